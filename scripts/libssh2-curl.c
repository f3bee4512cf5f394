/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Downloads one file through libcurl, with the size of its own buffer that
 * libcurl has by default (curl, the program, asks for a larger one), and says
 * how long that took.
 *
 *   libssh2-curl URL KEY
 *
 * Prints: bytes, seconds from the end of authentication to the end of the file.
 */
#include <curl/curl.h>
#include <stdio.h>

static size_t discard(char *data, size_t size, size_t count, void *nothing)
{
    (void)data;
    (void)nothing;
    return size * count;
}

int main(int argc, char **argv)
{
    CURL *curl;
    CURLcode code;
    curl_off_t bytes = 0, total = 0, connected = 0;

    if (argc != 3)
        return 2;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, argv[1]);
    curl_easy_setopt(curl, CURLOPT_SSH_PRIVATE_KEYFILE, argv[2]);
    curl_easy_setopt(curl, CURLOPT_SSH_AUTH_TYPES, CURLSSH_AUTH_PUBLICKEY);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
    code = curl_easy_perform(curl);
    if (code) {
        fprintf(stderr, "%s\n", curl_easy_strerror(code));
        return 1;
    }
    curl_easy_getinfo(curl, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
    curl_easy_getinfo(curl, CURLINFO_TOTAL_TIME_T, &total);
    curl_easy_getinfo(curl, CURLINFO_APPCONNECT_TIME_T, &connected);
    printf("%lld %.4f\n", (long long)bytes, (double)(total - connected) / 1e6);
    curl_easy_cleanup(curl);
    curl_global_cleanup();
    return 0;
}
