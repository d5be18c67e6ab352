"""Tests of s3://, gs:// and http:// against real servers on the loopback interface.

moto and an emulator of Google Cloud Storage come from the environment "stores" (./dev peers stores); where it is
missing, their tests are skipped. The web server and the proxy that injects faults are Python's own.
"""

import argparse
import os
import pathlib
import ssl
import subprocess
import sys
import threading

import servers


def some_bytes(size, seed):
    """As of store_util.h."""
    words = bytearray()
    while len(words) < size:
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        words += (seed >> 32).to_bytes(4, "little")
    return bytes(words[:size])


def certificate(out):
    """A certificate that is not trusted, or None."""
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
                        "/CN=127.0.0.1", "-keyout", out / "key.pem", "-out", out / "cert.pem"],
                       check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return out / "cert.pem", out / "key.pem"


def web_server():
    files = {"large": some_bytes(12_345_678, 7), "small": b"a small file\n", "empty": b""}
    return servers.Server(servers.Files, files=files, requests={}, lock=threading.Lock())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--test", required=True, action="append")
    parser.add_argument("--peers", required=True, type=pathlib.Path, help="bin/ of the environment")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    args, further = parser.parse_known_args()
    args.out.mkdir(parents=True, exist_ok=True)

    # Nothing of the user's own: neither credentials nor proxies.
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("AWS_", "GOOGLE_", "GCE_")) and "proxy" not in k.lower()}
    environment |= {"HOME": str(args.out), "AWS_EC2_METADATA_DISABLED": "true",
                    "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    environment["TANDEM_TEST_HTTP"] = web_server().url
    if files := certificate(args.out):
        secure = web_server()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        environment["TANDEM_TEST_HTTPS"] = secure.url.replace("http:", "https:")

    processes, proxies = [], []
    status = 0
    try:
        if (args.peers / "moto_server").exists():
            port, process = servers.start_moto(args.peers, args.out)
            processes.append(process)
            environment["TANDEM_TEST_S3"] = f"http://127.0.0.1:{port}"
            proxies.append(servers.faulty_proxy(port))
            environment["TANDEM_TEST_S3_FAULTY"] = proxies[-1].url
            servers.put(f"http://127.0.0.1:{port}/bucket")
        else:
            print(f"skipped: no moto in {args.peers}; ./dev peers stores installs it", file=sys.stderr)
        if (args.peers / "gcp-storage-emulator").exists():
            port, process = servers.start_gcs(args.peers, args.out)
            processes.append(process)
            environment["TANDEM_TEST_GS"] = f"http://127.0.0.1:{port}"
            proxies.append(servers.faulty_proxy(port))
            environment["TANDEM_TEST_GS_FAULTY"] = proxies[-1].url
        else:
            print(f"skipped: no gcp-storage-emulator in {args.peers}", file=sys.stderr)
        for test in args.test:
            status = subprocess.run([test, *further], env=environment).returncode or status
        for proxy in proxies:
            print("injected faults:", proxy.state["faults"], "in", proxy.state["count"], "requests")
    finally:
        for process in processes:
            process.terminate()
            process.wait()
    return status


if __name__ == "__main__":
    sys.exit(main())
