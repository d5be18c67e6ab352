"""Tests of s3://, gs:// and http:// against real servers on the loopback interface.

moto and an emulator of Google Cloud Storage come from the environment "stores" (./dev peers stores); where it is
missing, their tests are skipped. The web server and the proxy that injects faults are Python's own.
"""

import argparse
import base64
import json
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


def signed_by(key, out):
    """Whether a form of Google's token service holds a token that the private key has signed."""
    public = subprocess.run(["openssl", "pkey", "-in", key, "-pubout"], check=True, capture_output=True).stdout
    (out / "public.pem").write_bytes(public)

    def accept(form):
        text, _, signature = form["assertion"][0].rpartition(".")
        (out / "signature").write_bytes(base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4)))
        check = subprocess.run(["openssl", "dgst", "-sha256", "-verify", out / "public.pem", "-signature",
                                out / "signature"], input=text.encode(), capture_output=True)
        claims = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        return check.returncode == 0 and claims["iss"] == "me@project" and claims["exp"] > claims["iat"]
    return accept


def credential_services(environment, files, out):
    """The services that credentials come from, and the files that name them."""
    accept = signed_by(files[1], out) if files else lambda form: False
    services = servers.Server(servers.Credentials, lock=threading.Lock(), seen=[], accept=accept)
    environment["TANDEM_TEST_CREDENTIALS"] = services.url
    (out / ".aws").mkdir(exist_ok=True)
    (out / ".aws/credentials").write_text(
        "[default]\naws_access_key_id = of-default\naws_secret_access_key = secret\n"
        "# another\n[work]\naws_access_key_id=of-work\naws_secret_access_key=secret\naws_session_token = tok\n")
    (out / ".aws/config").write_text(
        f"[default]\nregion = eu-north-1\n[profile work]\nregion=eu-west-3\nendpoint_url = {services.url}\n"
        "s3 =\n  addressing_style = path\n")
    if files:
        (out / "service.json").write_text(json.dumps(
            {"type": "service_account", "client_email": "me@project", "private_key_id": "1",
             "private_key": files[1].read_text(), "token_uri": services.url + "/token"}))
        environment["TANDEM_TEST_SERVICE_ACCOUNT"] = str(out / "service.json")
    (out / "web_token").write_text("a.web.token\n")
    environment["TANDEM_TEST_WEB_TOKEN"] = str(out / "web_token")


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

    credential_services(environment, files, args.out)
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
            status = abs(subprocess.run([test, *further], env=environment).returncode) or status
        for proxy in proxies:
            print("injected faults:", proxy.state["faults"], "in", proxy.state["count"], "requests")
    finally:
        for process in processes:
            process.terminate()
            process.wait()
    return status


if __name__ == "__main__":
    sys.exit(main())
