/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves one file through libssh2 and says how long that took.
 *
 *   libssh2-transfer MODE HOST PORT USER KEY FILE [BUFFER [BEHIND [COMP]]]
 *
 * MODE is exec (FILE is then a command), scp, get or put (SFTP), or tcp, which
 * reads what is sent to a plain TCP connection. BUFFER is the
 * size of one read or write, 64 KiB if not given; BEHIND is given to
 * libssh2_sftp_write_behind() for put, if it is not 0; COMP asks for
 * compression methods. What put writes comes from stdin. Prints: bytes,
 * seconds from the opening of the channel to the end of file, SHA-256 of what
 * was moved, method from the server, method to the server.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <libssh2.h>
#include <libssh2_sftp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef int (*write_behind_fn)(LIBSSH2_SFTP_HANDLE *, size_t);

static LIBSSH2_SESSION *session;
static EVP_MD_CTX *hash;
static unsigned long long moved;

static void fail(const char *what)
{
    char *text = NULL;
    int code = session ? libssh2_session_last_error(session, &text, NULL, 0) : 0;

    fprintf(stderr, "%s: %s (%d)\n", what, text ? text : "failed", code);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void count(const char *data, size_t len)
{
    EVP_DigestUpdate(hash, data, len);
    moved += len;
}

static int connect_socket(const char *host, const char *port)
{
    struct sockaddr_in addr;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;

    /* as curl does: the end of a write must not wait for a round trip */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    memset(&addr, 0, sizeof(addr));
    addr.sin_family = AF_INET;
    addr.sin_port = htons((unsigned short)atoi(port));
    if (inet_pton(AF_INET, host, &addr.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
        fail("connect");
    return fd;
}

static void connect_to(const char *host, const char *port, const char *user,
                       const char *key, const char *comp)
{
    int fd = connect_socket(host, port);

    session = libssh2_session_init();
    if (comp) {
        libssh2_session_flag(session, LIBSSH2_FLAG_COMPRESS, 1);
        if (*comp && (libssh2_session_method_pref(session, LIBSSH2_METHOD_COMP_CS, comp) ||
                      libssh2_session_method_pref(session, LIBSSH2_METHOD_COMP_SC, comp)))
            fail("compression");
    }
    if (libssh2_session_handshake(session, fd))
        fail("handshake");
    if (libssh2_userauth_publickey_fromfile(session, user, NULL, key, NULL))
        fail("authentication");
}

static void read_channel(LIBSSH2_CHANNEL *channel, char *buf, size_t size,
                         long long limit)
{
    ssize_t n;

    while (limit < 0 || (long long)moved < limit) {
        size_t want = limit >= 0 && limit - (long long)moved < (long long)size
            ? (size_t)(limit - (long long)moved) : size;

        n = libssh2_channel_read(channel, buf, want);
        if (n < 0)
            fail("read");
        if (n == 0)
            break;
        count(buf, (size_t)n);
    }
}

static double exec_command(const char *command, char *buf, size_t size)
{
    double start = now();
    LIBSSH2_CHANNEL *channel = libssh2_channel_open_session(session);

    if (!channel || libssh2_channel_exec(channel, command))
        fail("exec");
    read_channel(channel, buf, size, -1);
    start = now() - start;
    libssh2_channel_free(channel);
    return start;
}

static double tcp_get(const char *host, const char *port, char *buf, size_t size)
{
    double start = now();
    int fd = connect_socket(host, port);
    ssize_t n;

    while ((n = read(fd, buf, size)) > 0)
        count(buf, (size_t)n);
    if (n < 0)
        fail("read");
    close(fd);
    return now() - start;
}

static double scp_get(const char *file, char *buf, size_t size)
{
    double start = now();
    libssh2_struct_stat st;
    LIBSSH2_CHANNEL *channel = libssh2_scp_recv2(session, file, &st);

    if (!channel)
        fail("scp");
    read_channel(channel, buf, size, (long long)st.st_size);
    start = now() - start;
    libssh2_channel_free(channel);
    return start;
}

static double sftp_get(const char *file, char *buf, size_t size)
{
    double start = now();
    LIBSSH2_SFTP *sftp = libssh2_sftp_init(session);
    LIBSSH2_SFTP_HANDLE *handle;
    ssize_t n;

    handle = sftp ? libssh2_sftp_open(sftp, file, LIBSSH2_FXF_READ, 0) : NULL;
    if (!handle)
        fail("sftp open");
    while ((n = libssh2_sftp_read(handle, buf, size)) > 0)
        count(buf, (size_t)n);
    if (n < 0)
        fail("sftp read");
    start = now() - start;
    libssh2_sftp_close(handle);
    libssh2_sftp_shutdown(sftp);
    return start;
}

static double sftp_put(const char *file, char *buf, size_t size, size_t behind)
{
    LIBSSH2_SFTP *sftp = libssh2_sftp_init(session);
    LIBSSH2_SFTP_HANDLE *handle;
    double start;
    size_t n;

    handle = sftp ? libssh2_sftp_open(sftp, file, LIBSSH2_FXF_WRITE |
                                      LIBSSH2_FXF_CREAT | LIBSSH2_FXF_TRUNC, 0600)
                  : NULL;
    if (!handle)
        fail("sftp open");
    if (behind) {
        /* stock libssh2 does not have it */
        write_behind_fn set = (write_behind_fn)dlsym(RTLD_DEFAULT, "libssh2_sftp_write_behind");
        if (!set || set(handle, behind))
            fail("write behind");
    }
    start = now();
    while ((n = fread(buf, 1, size, stdin)) > 0) {
        size_t at = 0;
        count(buf, n);
        while (at < n) {
            ssize_t wrote = libssh2_sftp_write(handle, buf + at, n - at);
            if (wrote < 0)
                fail("sftp write");
            at += (size_t)wrote;
        }
    }
    if (libssh2_sftp_close(handle))
        fail("sftp close");
    start = now() - start;
    libssh2_sftp_shutdown(sftp);
    return start;
}

int main(int argc, char **argv)
{
    size_t size = argc > 7 ? strtoul(argv[7], NULL, 0) : 65536;
    size_t behind = argc > 8 ? strtoul(argv[8], NULL, 0) : 0;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int i, digest_len;
    char *buf = malloc(size);
    double seconds;

    if (argc < 7 || !buf)
        return 2;
    hash = EVP_MD_CTX_new();
    EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
    libssh2_init(0);
    if (strcmp(argv[1], "tcp"))
        connect_to(argv[2], argv[3], argv[4], argv[5], argc > 9 ? argv[9] : NULL);
    if (!strcmp(argv[1], "tcp"))
        seconds = tcp_get(argv[2], argv[3], buf, size);
    else if (!strcmp(argv[1], "exec"))
        seconds = exec_command(argv[6], buf, size);
    else if (!strcmp(argv[1], "scp"))
        seconds = scp_get(argv[6], buf, size);
    else if (!strcmp(argv[1], "get"))
        seconds = sftp_get(argv[6], buf, size);
    else
        seconds = sftp_put(argv[6], buf, size, behind);
    EVP_DigestFinal_ex(hash, digest, &digest_len);
    printf("%llu %.4f ", moved, seconds);
    for (i = 0; i < digest_len; i++)
        printf("%02x", digest[i]);
    if (!session) {
        printf(" none none\n");
        return 0;
    }
    printf(" %s %s\n", libssh2_session_methods(session, LIBSSH2_METHOD_COMP_SC),
           libssh2_session_methods(session, LIBSSH2_METHOD_COMP_CS));
    libssh2_session_disconnect(session, "done");
    libssh2_session_free(session);
    libssh2_exit();
    EVP_MD_CTX_free(hash);
    free(buf);
    return 0;
}
