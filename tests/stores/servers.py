"""Servers on the loopback interface for the tests of stores: of files, and a proxy that injects faults."""

import http.client
import http.server
import pathlib
import socket
import socketserver
import subprocess
import threading
import time
import urllib.parse
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, handler, **state):
        self.state = state
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        pass  # connections that clients end are part of the tests


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Files(Handler):
    """Serves state["files"] (name -> bytes) by ranges; the first folder of a path says how else:

    /plain/NAME, /no_ranges/NAME, /redirect/NAME, /wrong_range/NAME, /longer/NAME, /nonsense/NAME, /stall/NAME,
    /changed/NAME (another tag for each answer), /status/CODE, /metadata/… (credentials).
    """

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        kind, _, name = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)[1:].partition("/")
        with self.server.state["lock"]:
            self.server.state["requests"][self.path] = self.server.state["requests"].get(self.path, 0) + 1
            number = self.server.state["requests"][self.path]
        if kind == "count":
            path = "/" + name
            return self.answer(200, str(self.server.state["requests"].get(path, 0)).encode())
        if kind == "status":
            return self.answer(int(name), b"<html>busy</html>")
        if kind == "redirect":
            return self.answer(302, headers=[("Location", "/plain/" + name)])
        if kind == "stall":
            if self.command == "HEAD":
                return self.answer(200)
            self.send_response(206)
            self.send_header("Content-Range", "bytes 0-65535/1000000")
            self.send_header("Content-Length", "65536")
            self.end_headers()
            self.wfile.write(b"x" * 100)
            self.wfile.flush()
            time.sleep(30)
            return None
        body = self.server.state["files"].get(name)
        if body is None:
            return self.answer(404)
        headers = [("ETag", f'"{number if kind == "changed" else 0}"')]
        asked = self.headers.get("Range")
        match = self.headers.get("If-Match")
        if match and match != headers[0][1]:
            return self.answer(412)
        if kind == "no_ranges" or not asked:
            return self.answer(200, body, headers)
        first, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
        if first >= len(body):
            return self.answer(416, headers=[("Content-Range", f"bytes */{len(body)}")])
        part = body[first:last + 1]
        text = f"bytes {first}-{first + len(part) - 1}/{len(body)}"
        if kind == "wrong_range":
            text = f"bytes {first + 1}-{first + len(part)}/{len(body) + 1}"
        if kind == "longer" and first > 0:
            part += b"more"
        if kind == "nonsense":
            text = "pages 1 to 3"
        return self.answer(206, part, headers + [("Content-Range", text)])


class Credentials(Handler):
    """What AWS' and Google's services answer: IMDSv2, a container's, a web identity, tokens of Google."""

    def do_GET(self):
        self.serve(b"")

    def do_PUT(self):
        self.serve(b"")

    def do_POST(self):
        self.serve(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def serve(self, body):
        path = urllib.parse.urlsplit(self.path).path
        keys = (b'{"Code":"Success","AccessKeyId":"testing","SecretAccessKey":"testing",'
                b'"Token":"t","Expiration":"2099-01-01T00:00:00Z"}')
        with self.server.state["lock"]:
            self.server.state["seen"].append((self.command, path, body))
        if self.command == "PUT" and path == "/latest/api/token":
            return self.answer(200, b"imds-token")
        if path.startswith("/latest/meta-data/"):
            if self.headers.get("X-aws-ec2-metadata-token") != "imds-token":
                return self.answer(401)
            return self.answer(200, keys if path.endswith("/role") else b"role\n")
        signed = (self.headers.get("Authorization", "none") + " token=" +
                  self.headers.get("X-Amz-Security-Token", "none")).encode()
        if path == "/bucket/echo" or "alt=media" in self.path:
            return self.answer(200, signed, [("ETag", '"1"')])
        if path == "/storage/v1/b/bucket/o/echo":
            return self.answer(200, b'{"size":"%d","generation":"1"}' % len(signed))
        if path == "/container":
            return self.answer(200 if self.headers.get("Authorization") == "secret" else 401, keys)
        if path == "/token":
            form = urllib.parse.parse_qs(body.decode())
            if not self.server.state["accept"](form):
                return self.answer(400, b'{"error":"invalid_grant","error_description":"signature"}')
            return self.answer(200, b'{"access_token":"from-key","expires_in":3600,"token_type":"Bearer"}')
        if path.endswith("/service-accounts/default/token"):
            if self.headers.get("Metadata-Flavor") != "Google":
                return self.answer(403)
            return self.answer(200, b'{"access_token":"from-machine","expires_in":3600}')
        return self.answer(404)


class FaultyProxy(Handler):
    """Forwards to state["upstream"]; every few requests one fails: 500, 503, slow, or cut within its body."""

    FAULTS = ["500", None, "cut", None, None, "503", None, "slow", None, "refuse", None, "late_cut", None]

    def forward(self):
        state = self.server.state
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with state["lock"]:
            fault = self.FAULTS[state["count"] % len(self.FAULTS)]
            state["count"] += 1
            if fault:
                state["faults"][fault] = state["faults"].get(fault, 0) + 1
        if fault in ("500", "503"):
            return self.answer(int(fault), b"<html>injected</html>")
        if fault == "refuse":
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        upstream = http.client.HTTPConnection("127.0.0.1", state["port"], timeout=60)
        headers = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
        upstream.request(self.command, self.path, body if body or self.command in ("PUT", "POST") else None,
                         headers)
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        # "late_cut": the store did what was asked, and its answer is lost.
        if fault == "late_cut" and self.command != "GET":
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        size = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", size or "0")
        self.end_headers()
        if self.command == "HEAD":
            return None
        if fault in ("cut", "late_cut"):
            self.wfile.write(content[:len(content) * 2 // 3])
            self.wfile.flush()
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        if fault == "slow":
            time.sleep(0.3)
        self.wfile.write(content)
        return None

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward


def faulty_proxy(port):
    return Server(FaultyProxy, port=port, lock=threading.Lock(), count=0, faults={})


def wait_for(port, process, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"a server ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("a server does not answer")


def start(arguments, port, log):
    with open(log, "wb") as out:
        process = subprocess.Popen(arguments, stdout=out, stderr=out)
    wait_for(port, process)
    return process


def start_moto(bin_folder, out):
    port = free_port()
    return port, start([bin_folder / "moto_server", "-H", "127.0.0.1", "-p", str(port)], port,
                       pathlib.Path(out) / "moto.log")


def start_gcs(bin_folder, out):
    port = free_port()
    return port, start([bin_folder / "gcp-storage-emulator", "start", "--host", "127.0.0.1", "--port",
                        str(port), "--in-memory", "--default-bucket", "bucket", "--quiet"], port,
                       pathlib.Path(out) / "gcs.log")


def put(url, body=b""):
    """A bucket of moto, which checks no signatures."""
    with urllib.request.urlopen(urllib.request.Request(url, body, method="PUT")) as answer:
        return answer.read()
