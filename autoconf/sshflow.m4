# sshflow.m4 - find libsshflow from a configure script            -*- Autoconf -*-
# SPDX-License-Identifier: BSD-3-Clause
# serial 1
#
# SSHFLOW_CHECK([MINIMUM-VERSION], [ACTION-IF-FOUND], [ACTION-IF-NOT-FOUND])
#
# Looks for libsshflow, at least MINIMUM-VERSION (such as 0.1.0; default: any),
# and sets, as output variables and for the shell,
#
#   SSHFLOW_CFLAGS   what compiling needs (-I...)
#   SSHFLOW_LIBS     what linking needs (-L... -lsshflow); never a run path
#   HAVE_SSHFLOW     "yes" or "no"
#
# and, if it was found, HAVE_SSHFLOW to 1 in the configuration header. It is
# taken from the first of these that is there:
#
#   1. SSHFLOW_CFLAGS and SSHFLOW_LIBS, when the user set SSHFLOW_LIBS;
#   2. --with-sshflow=PATH: PATH/include and the library directory under PATH;
#   3. pkg-config, or what PKG_CONFIG names, with PKG_CONFIG_PATH;
#   4. the compiler's own directories.
#
# --without-sshflow is "not found" without a search. Without
# ACTION-IF-NOT-FOUND, a library that the user asked for with --with-sshflow but
# that is not found ends configure; otherwise configure goes on.
#
# The test compiles and links, and never runs, so it also works for a cross
# compiler. pkg.m4 is not needed. CPPFLAGS and LIBS are left as they were.

# The option and the variables, once however often the check is made.
AC_DEFUN([_SSHFLOW_OPTIONS],
[AC_ARG_WITH([sshflow],
  [AS_HELP_STRING([--with-sshflow@<:@=PATH@:>@],
    [use libsshflow @<:@installed under PATH@:>@])],
  [], [with_sshflow=check])
AC_ARG_VAR([SSHFLOW_CFLAGS], [C compiler flags for libsshflow, instead of a search])
AC_ARG_VAR([SSHFLOW_LIBS], [linker flags for libsshflow, instead of a search])
AC_ARG_VAR([PKG_CONFIG], [path to pkg-config utility])
])# _SSHFLOW_OPTIONS

# _SSHFLOW_TRY(CFLAGS, LIBS, ACTION-IF-FOUND)
# Links a program with these flags; sshflow_min_number is the oldest version.
AC_DEFUN([_SSHFLOW_TRY],
[sshflow_save_CPPFLAGS=$CPPFLAGS
sshflow_save_LIBS=$LIBS
CPPFLAGS="$1 $CPPFLAGS"
LIBS="$2 $LIBS"
AC_LINK_IFELSE(
  [AC_LANG_PROGRAM([[#include <sshflow.h>
#if SSHFLOW_VERSION_NUMBER < $sshflow_min_number
# error "libsshflow is older than $sshflow_min_version"
#endif]], [[return sshflow_version_number() == 0;]])],
  [sshflow_linked=yes], [sshflow_linked=no])
CPPFLAGS=$sshflow_save_CPPFLAGS
LIBS=$sshflow_save_LIBS
AS_IF([test "x$sshflow_linked" = xyes], [$3])
])# _SSHFLOW_TRY

# _SSHFLOW_TRY_BOTH(CFLAGS, LIBS, LIBS-OF-A-STATIC-LIBRARY)
# The shared library brings what it needs along; the archive does not.
AC_DEFUN([_SSHFLOW_TRY_BOTH],
[_SSHFLOW_TRY([$1], [$2],
  [HAVE_SSHFLOW=yes
  SSHFLOW_CFLAGS="$1"
  SSHFLOW_LIBS="$2"])
AS_IF([test "x$HAVE_SSHFLOW" = xno],
  [_SSHFLOW_TRY([$1], [$3],
    [HAVE_SSHFLOW=yes
    SSHFLOW_CFLAGS="$1"
    SSHFLOW_LIBS="$3"])])
])# _SSHFLOW_TRY_BOTH

# Under $with_sshflow. The library's directory is found by its files, because
# lib, lib64 and lib/<multiarch> are all in use.
AC_DEFUN([_SSHFLOW_TRY_PATH],
[sshflow_libdir=$with_sshflow/lib
for sshflow_dir in "$with_sshflow/lib" "$with_sshflow/lib64" "$with_sshflow"/lib/*-*; do
  for sshflow_file in "$sshflow_dir"/libsshflow.so "$sshflow_dir"/libsshflow.dylib \
      "$sshflow_dir"/libsshflow.a; do
    AS_IF([test -f "$sshflow_file"], [sshflow_libdir=$sshflow_dir; break 2])
  done
done
_SSHFLOW_TRY_BOTH([-I$with_sshflow/include], [-L$sshflow_libdir -lsshflow],
  [-L$sshflow_libdir -lsshflow $sshflow_static_libs])
])# _SSHFLOW_TRY_PATH

# Through pkg-config. One without the host's prefix describes the build machine,
# unless the user pointed it somewhere else, so a cross build leaves it alone.
AC_DEFUN([_SSHFLOW_TRY_PKG_CONFIG],
[AS_IF([test -z "$PKG_CONFIG"],
  [AS_IF([test "x$cross_compiling" != xyes || test -n "$PKG_CONFIG_PATH" ||
      test -n "$PKG_CONFIG_LIBDIR" || test -n "$PKG_CONFIG_SYSROOT_DIR"],
    [AC_PATH_TOOL([PKG_CONFIG], [pkg-config])],
    [AC_PATH_PROG([PKG_CONFIG], [${ac_tool_prefix}pkg-config])])])
AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists sshflow 2>/dev/null],
  [sshflow_pkg_cflags=`$PKG_CONFIG --cflags sshflow 2>/dev/null`
  sshflow_pkg_libs=`$PKG_CONFIG --libs sshflow 2>/dev/null`
  sshflow_pkg_static=`$PKG_CONFIG --static --libs sshflow 2>/dev/null`
  _SSHFLOW_TRY_BOTH([$sshflow_pkg_cflags], [$sshflow_pkg_libs],
    [$sshflow_pkg_static])])
])# _SSHFLOW_TRY_PKG_CONFIG

AC_DEFUN([SSHFLOW_CHECK],
[AC_REQUIRE([AC_PROG_CC])
AC_REQUIRE([_SSHFLOW_OPTIONS])
AC_LANG_PUSH([C])
HAVE_SSHFLOW=no
sshflow_min_version="m4_default([$1], [0])"
sshflow_min_number=`echo "$sshflow_min_version" |
  awk -F. '{ print $[]1 * 65536 + $[]2 * 256 + $[]3 }'`
sshflow_static_libs="-lzstd -lz -lpthread -lm -ldl"
# Before the message, because looking for pkg-config prints one of its own.
AS_CASE([$with_sshflow],
  [no], [],
  [yes|check],
    [AS_IF([test -n "$SSHFLOW_LIBS"],
      [_SSHFLOW_TRY([$SSHFLOW_CFLAGS], [$SSHFLOW_LIBS], [HAVE_SSHFLOW=yes])],
      [_SSHFLOW_TRY_PKG_CONFIG
      AS_IF([test "x$HAVE_SSHFLOW" = xno],
        [_SSHFLOW_TRY_BOTH([], [-lsshflow], [-lsshflow $sshflow_static_libs])])])],
  [_SSHFLOW_TRY_PATH])
AS_IF([test "x$HAVE_SSHFLOW" = xno],
  [SSHFLOW_CFLAGS=
  SSHFLOW_LIBS=])
AC_MSG_CHECKING([for libsshflow]m4_ifval([$1], [ >= $sshflow_min_version]))
AS_IF([test "x$HAVE_SSHFLOW" = xyes],
  [AC_MSG_RESULT([$SSHFLOW_LIBS])],
  [AC_MSG_RESULT([no])])
AC_SUBST([HAVE_SSHFLOW])
AC_LANG_POP([C])
AS_IF([test "x$HAVE_SSHFLOW" = xyes],
  [AC_DEFINE([HAVE_SSHFLOW], [1], [Define to 1 if you have libsshflow.])
  $2],
  [m4_default([$3],
    [AS_CASE([$with_sshflow], [no|check], [],
      [AC_MSG_ERROR([libsshflow m4_ifval([$1], [>= $sshflow_min_version ])was asked for but not found; see config.log])])])])
])# SSHFLOW_CHECK
