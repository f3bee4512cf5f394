<?php
// Prints a file that it reads through SFTP: libssh2-clients.php PORT KEY FILE.
$session = ssh2_connect('127.0.0.1', (int)$argv[1], [
    'client_to_server' => ['comp' => 'zlib@openssh.com,none'],
    'server_to_client' => ['comp' => 'zlib@openssh.com,none'],
]);
if (!$session || !ssh2_auth_pubkey_file($session, 'libssh2', "$argv[2].pub", $argv[2])) {
    exit(1);
}
$sftp = ssh2_sftp($session);
readfile('ssh2.sftp://' . intval($sftp) . $argv[3]);
