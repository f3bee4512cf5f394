/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sshflow: compression that never costs more than it gains, and channel
 * windows that fit the path, for SSH implementations that already exist.
 *
 * Life of a connection
 * --------------------
 * Offer sshflow_method_list() in KEXINIT. When keys with a compression method
 * other than "none" are taken into use (for the delayed methods, which
 * sshflow_method_is_delayed() tells: once the user is authenticated), make a
 * compressor for what is sent and a decompressor for what is received:
 *
 *     sshflow_compressor *c;
 *     if (sshflow_compressor_new(method, NULL, &c) != SSHFLOW_OK) ...
 *
 * and give every payload to sshflow_compress() before it is padded and
 * encrypted, every payload received to sshflow_decompress(). At a key exchange
 * call sshflow_compressor_rekey() and make a new decompressor. Each channel of
 * the connection may have an sshflow_window, all of them on one sshflow_link,
 * that says when to send SSH_MSG_CHANNEL_WINDOW_ADJUST and of how much.
 *
 * Conventions
 * -----------
 * - Arguments come in the order handle, inputs, outputs. Results are int: 0 is
 *   success, above 0 a state that is no error, below 0 an error. The numbers
 *   are stable and never used again for something else.
 * - A pointer may be NULL only where its comment says so; elsewhere NULL gives
 *   SSHFLOW_ERR_INVALID_ARGUMENT. A pointer whose length or count is 0 may be
 *   NULL. Every _free(NULL) is a no-op.
 * - Outputs are written as documented, and otherwise left alone. No memory of
 *   the library is handed over; output goes into the caller's buffers. No
 *   pointer of the caller's is kept between calls.
 * - A handle belongs to one thread at a time; a link and its windows count as
 *   one. Other handles are independent. Everything survives fork(): parent and
 *   child may both go on, or free.
 * - Structures of statistics grow at their end only; pass sizeof.
 * - No threads, signals, files, sockets, environment or locale; nothing is
 *   written to stdout or stderr. After _new the only system calls are memory
 *   ones, the monotonic clock, and getsockopt() in the two functions that are
 *   given a descriptor to ask the kernel about.
 * - A fault inside the library gives SSHFLOW_ERR_INTERNAL, and from then on the
 *   handle answers SSHFLOW_ERR_STATE; it can only be freed.
 *
 * Not promised: that the same input gives the same bytes in the next version
 * (only that they decode to it), the wording of sshflow_strerror() and
 * sshflow_build_info(), and the size of any structure.
 */


#ifndef SSHFLOW_H
#define SSHFLOW_H

#include <stddef.h>
#include <stdint.h>
/*
 * A history group for sshflow_compress(), n from 0 to 65535, to be or-ed with
 * other flags. Packets of different groups share no history, so that nobody who
 * chooses the content of one can learn from packet lengths what is in another.
 * Group 0 is the session's own data; give each forwarded, X11 or agent channel
 * a group of its own.
 */
#define SSHFLOW_PACKET_GROUP(n) (((uint32_t)(n) & 0xffff) << 8)


/**
 * Success.
 */
#define SSHFLOW_OK 0

/**
 * Not an error: the output is full, call again.
 */
#define SSHFLOW_MORE 1

/**
 * An argument is NULL, out of bounds or of no known kind.
 */
#define SSHFLOW_ERR_INVALID_ARGUMENT -1

/**
 * Memory could not be allocated.
 */
#define SSHFLOW_ERR_NO_MEMORY -2

/**
 * The output buffer is too small; nothing happened, the call can be repeated.
 */
#define SSHFLOW_ERR_BUFFER_TOO_SMALL -3

/**
 * The peer sent what the wire format does not allow.
 */
#define SSHFLOW_ERR_CORRUPT -4

/**
 * A packet decompresses to more than `max_payload`.
 */
#define SSHFLOW_ERR_TOO_LARGE -5

/**
 * An unknown method, or something this system cannot do.
 */
#define SSHFLOW_ERR_UNSUPPORTED -6

/**
 * The handle failed earlier, or the call does not fit its state.
 */
#define SSHFLOW_ERR_STATE -7

/**
 * A fault of the library itself; the handle is unusable, free it.
 */
#define SSHFLOW_ERR_INTERNAL -8

/**
 * The version of this header as 0x00MMmmpp, to be compared at compile time;
 * sshflow_version_number() is the version of the library that was loaded.
 */
#define SSHFLOW_VERSION_NUMBER 256

/**
 * "none": payloads are copied.
 */
#define SSHFLOW_METHOD_NONE 0

/**
 * "zlib" (RFC 4253): starts with the first keys, before authentication.
 */
#define SSHFLOW_METHOD_ZLIB 1

/**
 * "zlib@openssh.com": the same wire, after user authentication.
 */
#define SSHFLOW_METHOD_ZLIB_DELAYED 2

/**
 * "zstd@sshflow.org" (doc/zstd-sshflow.md): after user authentication.
 */
#define SSHFLOW_METHOD_ZSTD 3

/**
 * Latency comes first for this packet: a keystroke, an echo.
 */
#define SSHFLOW_PACKET_INTERACTIVE 1

/**
 * The packet is stored, and enters no history that later packets are matched
 * against: a password typed at a prompt.
 */
#define SSHFLOW_PACKET_SECRET 2

/**
 * The peer's channel window is full behind the packet that comes next, or, said
 * without one, at present: then it, not the network, is what holds the sender.
 */
#define SSHFLOW_LINK_WINDOW_LIMITED 1

/**
 * What sets the pace of a connection is not known, because too little was
 * sent or nothing has to be chosen.
 */
#define SSHFLOW_PACE_UNKNOWN 0

/**
 * The sender: its CPU, or where its data comes from.
 */
#define SSHFLOW_PACE_SENDER 1

/**
 * The link.
 */
#define SSHFLOW_PACE_LINK 2

/**
 * The peer: its CPU, or where its data goes.
 */
#define SSHFLOW_PACE_PEER 3

/**
 * The peer's channel window.
 */
#define SSHFLOW_PACE_WINDOW 4

/**
 * The peer's KEXINIT lists the method zstd@sshflow.org, so its buffers bear
 * large windows.
 */
#define SSHFLOW_PEER_HAS_SSHFLOW 1

/**
 * A channel that carries a command, a subsystem or a forward.
 */
#define SSHFLOW_CHANNEL_BULK 0

/**
 * A channel with a terminal: somebody waits for each answer.
 */
#define SSHFLOW_CHANNEL_INTERACTIVE 1

/**
 * A forwarded X11 client.
 */
#define SSHFLOW_CHANNEL_X11 2

/**
 * Compresses the payloads of one direction of one connection.
 */
typedef struct sshflow_compressor sshflow_compressor;

/**
 * Parameters for compressors, decompressors and links. They are copied by
 * whatever is made with them, so that a configuration can be changed or freed
 * at any time.
 */
typedef struct sshflow_config sshflow_config;

/**
 * Decompresses the payloads of one direction of one connection, for the life
 * of one set of keys.
 */
typedef struct sshflow_decompressor sshflow_decompressor;

/**
 * One SSH connection: its round trip, its peer, and the budget that its
 * windows share.
 */
typedef struct sshflow_link sshflow_link;

/**
 * The receive window of one channel.
 */
typedef struct sshflow_window sshflow_window;

/**
 * A piece of a payload. `data` may be NULL if `len` is 0.
 */
typedef struct sshflow_slice {
    /**
     * The first byte.
     */
    const uint8_t *data;
    /**
     * Bytes.
     */
    size_t len;
} sshflow_slice;

/**
 * Totals of one compressor since it was made; a re-key does not reset them.
 */
typedef struct sshflow_compress_stats {
    /**
     * Payload bytes taken.
     */
    uint64_t raw_bytes;
    /**
     * Bytes handed out for them.
     */
    uint64_t wire_bytes;
    /**
     * Payloads taken.
     */
    uint64_t packets;
    /**
     * Payloads that went out stored.
     */
    uint64_t stored_packets;
    /**
     * Time spent on them, in microseconds of the monotonic clock.
     */
    uint64_t spent_us;
    /**
     * How often the effort of a packet was not that of the packet before.
     */
    uint64_t effort_changes;
    /**
     * Bytes that the engines hold now.
     */
    uint64_t memory_bytes;
    /**
     * The most bytes that the engines ever held.
     */
    uint64_t memory_peak_bytes;
    /**
     * The method in use, an `SSHFLOW_METHOD_` number.
     */
    int32_t method;
    /**
     * The level configured; INT32_MIN: auto.
     */
    int32_t level;
    /**
     * The level of the latest packet; INT32_MIN: stored, or none yet. With a
     * fixed level that does not fit `memory_limit`, the lower one that ran.
     */
    int32_t last_level;
    /**
     * How many entries of `level_packets` there are.
     */
    uint32_t level_count;
    /**
     * Packets by level; the first entry is level -7, the eighth level 0.
     */
    uint64_t level_packets[27];
    /**
     * The level that most payload bytes were sent with, of all levels and of
     * stored; INT32_MIN: stored, or no packet yet. With a fixed level that
     * does not fit `memory_limit`, the lower one that ran.
     */
    int32_t main_level;
    /**
     * What sets the pace of the connection at present, an `SSHFLOW_PACE_`
     * number. With a fixed level SSHFLOW_PACE_UNKNOWN.
     */
    int32_t pace;
    /**
     * Bytes per second that the link is believed to carry, counted after
     * compression; 0: not known, because the socket was never full, or the
     * level is fixed. A peer slower than the link hides how fast that is.
     */
    uint64_t link_bytes_per_s;
} sshflow_compress_stats;

/**
 * Totals of one decompressor.
 */
typedef struct sshflow_decompress_stats {
    /**
     * Bytes taken from the wire.
     */
    uint64_t wire_bytes;
    /**
     * Payload bytes handed out.
     */
    uint64_t raw_bytes;
    /**
     * Payloads handed out whole.
     */
    uint64_t packets;
    /**
     * Bytes that the decoders hold now.
     */
    uint64_t memory_bytes;
    /**
     * The most bytes that the decoders ever held.
     */
    uint64_t memory_peak_bytes;
    /**
     * The method in use, an `SSHFLOW_METHOD_` number.
     */
    int32_t method;
    /**
     * Zero.
     */
    int32_t reserved;
} sshflow_decompress_stats;

/**
 * The state and the history of one window. Fields are only ever added at the
 * end. In C it is `struct sshflow_window_stats`, because the function of that
 * name leaves no room for a typedef.
 */
struct sshflow_window_stats {
    /**
     * Bytes received since the channel was opened.
     */
    uint64_t received;
    /**
     * Bytes handed on by the host.
     */
    uint64_t consumed;
    /**
     * Bytes of credit given, the initial window included.
     */
    uint64_t granted;
    /**
     * Bytes received and not yet consumed.
     */
    uint64_t backlog;
    /**
     * Bytes per second delivered in the last measured round; 0: none yet.
     */
    uint64_t rate;
    /**
     * Bytes: the window in force (credit + backlog never exceed it).
     */
    uint32_t window;
    /**
     * Bytes: the size the window is heading for.
     */
    uint32_t target;
    /**
     * Bytes: what the window would be without sshflow.
     */
    uint32_t stock;
    /**
     * Bytes the peer may still send.
     */
    uint32_t credit;
    /**
     * Bytes: the largest window this peer is given.
     */
    uint32_t peer_cap;
    /**
     * Microseconds: the path's minimum round trip; 0: not known.
     */
    uint32_t min_rtt_us;
    /**
     * How often `adjust` gave credit.
     */
    uint32_t adjusts;
    /**
     * How often the window grew.
     */
    uint32_t grows;
    /**
     * How often it was made smaller.
     */
    uint32_t shrinks;
    /**
     * How often another size was tried for its effect on the rate.
     */
    uint32_t probes;
    /**
     * Why it last changed; sshflow_window_reason() says it in words.
     */
    uint32_t reason;
    /**
     * 1 while latency mode holds on this connection, else 0.
     */
    uint32_t latency_mode;
};



#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The library's version as 0x00MMmmpp: major, minor, patch.
 */
uint32_t sshflow_version_number(void);

/**
 * The library's version, as in "0.1.0". Static; never NULL.
 */
const char *sshflow_version_string(void);

/**
 * The engines, their versions as loaded, and whether they are the system's or
 * bundled, for bug reports: "sshflow 0.1.0, zlib 1.2.13 (system), zstd 1.5.4
 * (system)". Static; never NULL.
 */
const char *sshflow_build_info(void);

/**
 * One sentence for a status code. Static; never NULL, for any number.
 */
const char *sshflow_strerror(int code);

/**
 * Makes a configuration with every parameter at its default and writes it to
 * `*out`, on success only. Free it with sshflow_config_free().
 *
 * Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for NULL, or
 * SSHFLOW_ERR_NO_MEMORY.
 */
int sshflow_config_new(struct sshflow_config **out);

/**
 * Sets a parameter from text, as it would stand in a configuration file. Both
 * strings are NUL-terminated. The keys, their units, bounds and defaults are
 * in sshflow(3).
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL, an unknown
 * key or a value that the key does not take; nothing is changed then.
 */
int sshflow_config_set(struct sshflow_config *config,
                       const char *key,
                       const char *value);

/**
 * Sets a parameter from a number: "off" is 0 and "on" 1, "fixed" 0 and "auto"
 * 1, the level "auto" INT64_MIN.
 *
 * Returns as sshflow_config_set().
 */
int sshflow_config_set_int(struct sshflow_config *config,
                           const char *key,
                           int64_t value);

/**
 * Reads a parameter as a number, into `*value`, on success only.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL or an unknown
 * key.
 */
int sshflow_config_get_int(const struct sshflow_config *config,
                           const char *key,
                           int64_t *value);

/**
 * Reads a parameter in text form, NUL-terminated, into `value`, which has room
 * for `value_capacity` bytes. 32 suffice for every parameter.
 *
 * Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for NULL or an unknown key,
 * or SSHFLOW_ERR_BUFFER_TOO_SMALL; `value` is written on success only.
 */
int sshflow_config_get(const struct sshflow_config *config,
                       const char *key,
                       char *value,
                       size_t value_capacity);

/**
 * Frees a configuration. NULL is a no-op.
 */
void sshflow_config_free(struct sshflow_config *config);

/**
 * Finds a method by the name that was negotiated. `name` is `name_len` bytes
 * and needs no terminator. `*method` is written on success only.
 *
 * Returns SSHFLOW_OK, SSHFLOW_ERR_UNSUPPORTED for a name unknown, or
 * SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
 */
int sshflow_method_from_name(const char *name, size_t name_len, int *method);

/**
 * The name of a method, as it stands in KEXINIT. Static; NULL for a number
 * unknown.
 */
const char *sshflow_method_name(int method);

/**
 * The comma-separated list for KEXINIT: with `offer` 0 "none" comes first and
 * the rest only says what this end can do, otherwise compression comes first.
 * Never contains "zlib", which starts before authentication. Static; never
 * NULL.
 */
const char *sshflow_method_list(int offer);

/**
 * 1 if the method starts after user authentication, 0 if it does not or if
 * the number is unknown.
 */
int sshflow_method_is_delayed(int method);

/**
 * The room in bytes that always suffices to compress a payload of
 * `payload_len` bytes; sshflow_compress() refuses less. 0 for a method unknown
 * and for a payload over 1 GiB.
 */
size_t sshflow_compress_bound(int method, size_t payload_len);

/**
 * Makes a compressor and writes it to `*out`, on success only. `config` NULL
 * means the defaults. Cheap: engines are allocated by the first packet that
 * needs them. Free it with sshflow_compressor_free().
 *
 * Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for an unknown method or
 * `out` NULL, or SSHFLOW_ERR_NO_MEMORY.
 */
int sshflow_compressor_new(int method,
                           const struct sshflow_config *config,
                           struct sshflow_compressor **out);

/**
 * Compresses one SSH payload (RFC 4253 section 6: what is between padding
 * length and padding), given as `part_count` pieces that are taken as one.
 * What stands in `out` then decodes to exactly this payload as soon as it
 * arrives. `out` must not overlap the payload; its capacity must be at least
 * sshflow_compress_bound() for the payload's length. `*out_len` is written on
 * success only. `flags`: SSHFLOW_PACKET_ bits, and SSHFLOW_PACKET_GROUP(n).
 *
 * Returns SSHFLOW_OK; SSHFLOW_ERR_BUFFER_TOO_SMALL, with the stream
 * untouched, so that the call can be repeated with more room;
 * SSHFLOW_ERR_INVALID_ARGUMENT for NULL, unknown flags or a payload of 0
 * bytes; SSHFLOW_ERR_TOO_LARGE for a payload over 1 GiB. Engines that cannot
 * be allocated are no error: packets go out stored then.
 */
int sshflow_compress(struct sshflow_compressor *compressor,
                     const struct sshflow_slice *parts,
                     size_t part_count,
                     uint32_t flags,
                     uint8_t *out,
                     size_t out_capacity,
                     size_t *out_len);

/**
 * Tells the compressor what the host knows for free: its monotonic clock in
 * microseconds, the bytes waiting in its own output queue (SIZE_MAX: not
 * known), and SSHFLOW_LINK_ flags. Optional; call it before sshflow_compress()
 * as often as is convenient.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL or unknown
 * flags.
 */
int sshflow_compressor_feedback(struct sshflow_compressor *compressor,
                                uint64_t now_us,
                                size_t queued_bytes,
                                uint32_t flags);

/**
 * Begins a fresh wire stream after a key exchange, perhaps with another
 * method. What was learned of the data and the link, and the totals, stay.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL or an unknown
 * method.
 */
int sshflow_compressor_rekey(struct sshflow_compressor *compressor,
                             int method);

/**
 * Writes the totals to `*stats`, of which the caller knows `stats_size` bytes
 * (sizeof *stats). A shorter structure gets the front, a longer one zeroes
 * behind.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for a size
 * of 0 or above 4096.
 */
int sshflow_compressor_stats(const struct sshflow_compressor *compressor,
                             struct sshflow_compress_stats *stats,
                             size_t stats_size);

/**
 * Frees a compressor and zeroes what held payload. NULL is a no-op.
 */
void sshflow_compressor_free(struct sshflow_compressor *compressor);

/**
 * Makes a decompressor and writes it to `*out`, on success only. `config` NULL
 * means the defaults. Cheap: decoders are allocated by the first packet that
 * needs them. Make a new one after each key exchange; free it with
 * sshflow_decompressor_free().
 *
 * Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for an unknown method or
 * `out` NULL, or SSHFLOW_ERR_NO_MEMORY.
 */
int sshflow_decompressor_new(int method,
                             const struct sshflow_config *config,
                             struct sshflow_decompressor **out);

/**
 * Decompresses one packet, in one or more calls. The first call is given the
 * whole packet. SSHFLOW_MORE says that `out` is full and the packet goes on:
 * call again with the input not yet used, which may be none, and fresh room.
 * SSHFLOW_OK ends the packet: all input is used, all output delivered.
 * `*in_used` and `*out_len` are written with these two results only, and count
 * this call's bytes. No pointer is kept between calls; `in` and `out` must not
 * overlap.
 *
 * Returns, besides, SSHFLOW_ERR_CORRUPT for what the wire does not allow;
 * SSHFLOW_ERR_TOO_LARGE for a packet of more than `max_payload` bytes, before
 * more than that was produced; SSHFLOW_ERR_NO_MEMORY; after any of these
 * SSHFLOW_ERR_STATE for every call. SSHFLOW_ERR_INVALID_ARGUMENT for NULL, an
 * empty packet, or input whose length is not what was left of the packet;
 * nothing is changed then.
 */
int sshflow_decompress(struct sshflow_decompressor *decompressor,
                       const uint8_t *in,
                       size_t in_len,
                       size_t *in_used,
                       uint8_t *out,
                       size_t out_capacity,
                       size_t *out_len);

/**
 * Writes the totals to `*stats`, of which the caller knows `stats_size` bytes
 * (sizeof *stats). A shorter structure gets the front, a longer one zeroes
 * behind.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for a size
 * of 0 or above 4096.
 */
int sshflow_decompressor_stats(const struct sshflow_decompressor *decompressor,
                               struct sshflow_decompress_stats *stats,
                               size_t stats_size);

/**
 * Frees a decompressor and zeroes what held payload. NULL is a no-op.
 */
void sshflow_decompressor_free(struct sshflow_decompressor *decompressor);

/**
 * Makes a link and writes it to `*out`, on success only. `config` NULL means
 * the defaults. Free it with sshflow_link_free(), before its windows or after
 * them.
 *
 * Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for `out` NULL, or
 * SSHFLOW_ERR_NO_MEMORY.
 */
int sshflow_link_new(const struct sshflow_config *config,
                     struct sshflow_link **out);

/**
 * Tells what the peer is: its identification line "SSH-2.0-..." (RFC 4253
 * section 4.2), with or without CR LF, and 0 or SSHFLOW_PEER_HAS_SSHFLOW.
 * Windows are then no larger than the peer's buffers bear: 2 MiB towards
 * OpenSSH up to 3.8, and 15 MiB towards whoever is not known to bear more,
 * to whom a window is also no larger than what the path holds (a quarter more
 * while the rate rises) and 2 MiB.
 * Without this call the same holds. May be called again.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL, an unknown
 * flag, or a line that does not begin with "SSH-"; nothing changes then.
 */
int sshflow_link_peer(struct sshflow_link *link,
                      const char *ident,
                      size_t ident_len,
                      uint32_t flags);

/**
 * Gives a sample of the path's minimum round trip, in microseconds, taken at
 * `now_us` (microseconds of a monotonic clock, as everywhere here). Optional;
 * about once a round trip is plenty. sshflow_tcp_min_rtt() is one way to get
 * it; plain round trips do too, since the least of the last minutes counts.
 * Below 1000 the path is a LAN and every window behaves as OpenSSH's own.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for
 * UINT32_MAX, by which kernels say that they do not know.
 */
int sshflow_link_rtt(struct sshflow_link *link,
                     uint64_t now_us,
                     uint32_t min_rtt_us);

/**
 * Frees a link. Its windows stay usable, and may be freed later. NULL is a
 * no-op.
 */
void sshflow_link_free(struct sshflow_link *link);

/**
 * Asks the kernel for the minimum round trip of the TCP connection behind the
 * descriptor `fd` and writes it to `*min_rtt_us`, in microseconds, on success
 * only. Linux since 4.6 knows the minimum; FreeBSD and OpenBSD tell the
 * smoothed round trip, macOS the latest in whole milliseconds, which do for
 * sshflow_link_rtt() as well. One system call; nothing is kept.
 *
 * Returns SSHFLOW_OK; SSHFLOW_ERR_UNSUPPORTED if `fd` is no TCP connection (a
 * pipe, say) or the system does not tell; SSHFLOW_ERR_STATE if nothing has
 * been measured yet; SSHFLOW_ERR_INVALID_ARGUMENT for NULL or a descriptor
 * that is not open.
 */
int sshflow_tcp_min_rtt(int fd, uint32_t *min_rtt_us);

/**
 * Lets the compressor ask the kernel how the TCP connection behind the
 * descriptor `fd` drains: then it knows the pace of the path, and whether the
 * peer's receive buffer holds it up, from the second round trip on, and not
 * only once the send buffer is full. Optional; call it where
 * sshflow_compressor_feedback() is called, with the same clock, in
 * microseconds. It makes one system call (getsockopt) or none: at most one in
 * a millisecond of that clock, and none where the level is fixed. `fd` is not
 * kept.
 *
 * Returns SSHFLOW_OK; SSHFLOW_ERR_UNSUPPORTED if `fd` is no TCP connection (a
 * pipe, say) or the system does not tell (Linux since 4.10 does), after which
 * there is no use in calling it again; SSHFLOW_ERR_INVALID_ARGUMENT for NULL
 * or a descriptor that is not open. The compressor works on after any of them.
 */
int sshflow_compressor_tcp(struct sshflow_compressor *compressor,
                           uint64_t now_us,
                           int fd);

/**
 * Makes the window of a channel and writes it to `*out`, on success only.
 * `kind`: an SSHFLOW_CHANNEL_ number. `initial_window`: bytes of credit that
 * the peer already has from the open or its confirmation; 0 if it has none
 * (a session of OpenSSH's server): the first sshflow_window_adjust() then
 * grants what stock OpenSSH does, 2 MiB, for X11 64 KiB. `max_packet`: the
 * largest packet that the peer was allowed, in bytes.
 *
 * Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for NULL, an unknown kind,
 * `initial_window` above 2^31-1 or `max_packet` 0, or SSHFLOW_ERR_NO_MEMORY.
 */
int sshflow_window_new(struct sshflow_link *link,
                       int kind,
                       uint32_t initial_window,
                       uint32_t max_packet,
                       struct sshflow_window **out);

/**
 * `bytes` of data arrived from the peer at `now_us`. More than its credit is
 * counted as received and leaves it no credit; whether that ends the
 * connection is the host's decision.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
 */
int sshflow_window_received(struct sshflow_window *window,
                            uint64_t now_us,
                            uint32_t bytes);

/**
 * The host handed `bytes` of what was received on, or dropped them.
 *
 * Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for NULL, or
 * SSHFLOW_ERR_STATE for more than was received and not yet consumed; nothing
 * is counted then, and the window stays usable.
 */
int sshflow_window_consumed(struct sshflow_window *window,
                            uint64_t now_us,
                            uint32_t bytes);

/**
 * Asks for the increment that SSH_MSG_CHANNEL_WINDOW_ADJUST should carry now,
 * and writes it to `*increment`: bytes, 0 to send nothing. What is returned
 * counts as granted: a host that cannot send it now sends the same number
 * later, and does not ask again for it. Call it whenever something was
 * consumed; it is cheap.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
 */
int sshflow_window_adjust(struct sshflow_window *window,
                          uint64_t now_us,
                          uint32_t *increment);

/**
 * The host gives the peer `bytes` of credit by itself. Call it before sending
 * them.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for credit
 * that would go over 2^31-1 or over what the peer bears; nothing is counted
 * then, and should not be sent.
 */
int sshflow_window_granted(struct sshflow_window *window,
                           uint64_t now_us,
                           uint32_t bytes);

/**
 * The host wants the peer to have at least `bytes` of credit after the next
 * sshflow_window_adjust(): it is about to read that much. Granted as far as
 * the peer and the budget allow.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
 */
int sshflow_window_require(struct sshflow_window *window, uint32_t bytes);

/**
 * Tells what to plan with, in bytes. `*size`: the window in force, the most
 * that the peer can have under way and waiting; it grows with an adjust and
 * shrinks as credit is used up. `*outstanding`: how much a protocol above,
 * SFTP say, should have requested and not yet got.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
 */
int sshflow_window_target(const struct sshflow_window *window,
                          uint32_t *size,
                          uint32_t *outstanding);

/**
 * Writes the window's state and history to `*stats`, of which the caller
 * knows `stats_size` bytes (sizeof *stats). A shorter structure gets the
 * front, a longer one zeroes behind.
 *
 * Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for a size
 * of 0 or above 4096.
 */
int sshflow_window_stats(const struct sshflow_window *window,
                         struct sshflow_window_stats *stats,
                         size_t stats_size);

/**
 * A few words for the `reason` in sshflow_window_stats, as in "path needs
 * more". Static; never NULL.
 */
const char *sshflow_window_reason(uint32_t reason);

/**
 * Frees a window. NULL is a no-op.
 */
void sshflow_window_free(struct sshflow_window *window);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SSHFLOW_H */
