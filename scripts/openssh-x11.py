#!/usr/bin/python3
"""Draws for openssh-x11: openssh-x11.py FILE MEGABYTES.

Sends the bytes of FILE, as pictures of 32 bits a pixel, to a pixmap of
$DISPLAY, again from the start where the file ends; then reads the pixmap back in
one request and compares. Prints MB per second of both.
"""

import sys
import time

from Xlib import X, display

WIDTH, HEIGHT = 1000, 64
PICTURE = WIDTH * HEIGHT * 4
# A pixmap is not higher than this.
MOST = 32767 // HEIGHT


def main():
    count = int(sys.argv[2]) * 1_000_000 // PICTURE
    if not 1 <= count <= MOST:
        sys.exit(f"between 1 and {MOST * PICTURE // 1_000_000} MB, please")
    with open(sys.argv[1], "rb") as source:
        data = source.read()
    data = data[:len(data) // PICTURE * PICTURE]
    sent = (data * (count * PICTURE // len(data) + 1))[:count * PICTURE]
    screen = display.Display()
    pixmap = screen.screen().root.create_pixmap(WIDTH, HEIGHT * count, 24)
    gc = pixmap.create_gc()
    screen.sync()

    start = time.monotonic()
    for number in range(count):
        picture = sent[number * PICTURE:(number + 1) * PICTURE]
        pixmap.put_image(gc, 0, number * HEIGHT, WIDTH, HEIGHT, X.ZPixmap, 24, 0, picture)
        screen.flush()
    screen.sync()
    drawn = time.monotonic()
    seen = pixmap.get_image(0, 0, WIDTH, HEIGHT * count, X.ZPixmap, 0xFFFFFFFF).data
    read = time.monotonic()

    # The fourth byte of a pixel is not kept.
    if any(seen[colour::4] != sent[colour::4] for colour in range(3)):
        sys.exit("the server has another picture than was sent")
    print(f"{len(sent) / 1e6 / (drawn - start):.2f} {len(sent) / 1e6 / (read - drawn):.2f}")


main()
