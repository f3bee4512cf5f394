/* Says which library it runs with, or that it was built without one. */
#include "config.h"

#include <stdio.h>

#ifdef HAVE_SSHFLOW
#include <sshflow.h>
#endif

int
main(void)
{
#ifdef HAVE_SSHFLOW
	printf("libsshflow %s\n", sshflow_version_string());
#else
	printf("no libsshflow\n");
#endif
	return 0;
}
