"""How much of a link reading TFRecords uses: a proxy on the loopback interface shapes it to 20 ms and 1 Gbit/s.

usage: link.py --program build/tests/read_records [--mb 500] [--ms 20] [--gbit 1]

Prints the figures of some runs: MB/s, and the share of what the link could carry. A plain connection that reads the file
from beginning to end through the same proxy stands beside it.
"""

import argparse
import asyncio
import http.server
import multiprocessing
import os
import pathlib
import re
import socketserver
import subprocess
import tempfile
import time
import urllib.request


class FileServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def serve(path, pipe):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_GET(self):
            size = os.path.getsize(path)
            first, last = 0, size - 1
            asked = self.headers.get("Range")
            if asked:
                first, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
                last = min(last, size - 1)
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", str(last - first + 1))
            self.end_headers()
            self.wfile.flush()
            with open(path, "rb") as file:
                while first <= last:
                    first += os.sendfile(self.connection.fileno(), file.fileno(), first, last - first + 1)

    server = FileServer(("127.0.0.1", 0), Handler)
    pipe.send(server.server_address[1])
    server.serve_forever()


class Link:
    """One wire for all connections: bytes leave it in turn at its rate, and come `delay` later."""

    def __init__(self, loop, rate, delay):
        self.loop, self.rate, self.delay, self.free = loop, rate, delay, 0.0

    def arrival(self, size):
        self.free = max(self.free, self.loop.time()) + size / self.rate
        return self.free + self.delay


class Side(asyncio.Protocol):
    """One end of a connection through the link; what it gets goes to the other end."""

    WINDOW = 8 << 20

    def __init__(self, link, connect=None):
        self.link, self.connect, self.other, self.transport, self.early, self.under_way = link, connect, None, None, [], 0

    def connection_made(self, transport):
        self.transport = transport
        if self.connect:
            self.link.loop.create_task(self.open())

    async def open(self):
        _, self.other = await self.link.loop.create_connection(lambda: Side(self.link), "127.0.0.1", self.connect)
        self.other.other = self
        for data in self.early:
            self.data_received(data)

    def data_received(self, data):
        if not self.other:
            self.early.append(data)
            return
        self.under_way += len(data)
        if self.under_way > self.WINDOW:
            self.transport.pause_reading()
        self.link.loop.call_at(self.link.arrival(len(data)), self.deliver, data)

    def deliver(self, data):
        self.under_way -= len(data)
        if self.under_way <= self.WINDOW and not self.transport.is_closing():
            self.transport.resume_reading()
        if self.other.transport and not self.other.transport.is_closing():
            self.other.transport.write(data)

    def connection_lost(self, error):
        if self.other and self.other.transport:
            self.other.transport.close()


def shape(port, rate, delay, pipe):
    async def run():
        loop = asyncio.get_running_loop()
        link = Link(loop, rate, delay)
        server = await loop.create_server(lambda: Side(link, port), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()
    asyncio.run(run())


def begin(function, *arguments):
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=function, args=(*arguments, theirs), daemon=True)
    process.start()
    return process, ours.recv()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--mb", type=int, default=500)
    parser.add_argument("--ms", type=float, default=20, help="there and back")
    parser.add_argument("--gbit", type=float, default=1)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    rate = args.gbit * 1e9 / 8
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "records"
        subprocess.run([args.program, "write", path, str(args.mb)], check=True)
        server, port = begin(serve, path)
        proxy, shaped = begin(shape, port, rate, args.ms / 2000)
        url = f"http://127.0.0.1:{shaped}/records"
        for _ in range(args.runs):
            text = subprocess.run([args.program, "read", url], check=True, capture_output=True, text=True).stdout
            speed = float(re.match(r"([\d.]+) MB/s", text)[1])
            start = time.monotonic()
            size = 0
            with urllib.request.urlopen(url) as answer:
                while piece := answer.read(1 << 20):
                    size += len(piece)
            plain = size / 1e6 / (time.monotonic() - start)
            print(f"records {speed:6.1f} MB/s, {speed * 1e6 / rate:.3f} of the link; "
                  f"one plain connection {plain:6.1f} MB/s, {plain * 1e6 / rate:.3f}", flush=True)
        proxy.terminate()
        server.terminate()


if __name__ == "__main__":
    main()
