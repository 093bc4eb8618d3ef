"""A relay on loopback between an agent and a server, which keeps what both said.

Bodies pass as they come, so that a stream stays one."""

import http.client
import http.server
import json
import threading
import urllib.parse

WAIT_SECONDS = 300
READ_BYTES = 65536
# Of one connection alone, or set anew by whoever sends.
HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class Exchange:
    """One request with its answer; `status` is 0 while there is none."""

    def __init__(self, method: str, path: str, headers: dict, body: bytes):
        self.method, self.path, self.headers, self.body = method, path, headers, body
        self.status, self.answer_headers, self.answer = 0, {}, b""

    def json(self):
        return json.loads(self.body) if self.body else None


class Recorder:
    """`url` leads to `upstream`; `exchanges` are in the order in which requests came."""

    def __init__(self, upstream: str):
        self.exchanges: list[Exchange] = []
        recorder, address = self, urllib.parse.urlsplit(upstream)

        class Relay(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def relay(self):
                size = int(self.headers.get("Content-Length", 0))
                exchange = Exchange(self.command, self.path, dict(self.headers),
                                    self.rfile.read(size))
                recorder.exchanges.append(exchange)
                server = http.client.HTTPConnection(address.hostname, address.port,
                                                    timeout=WAIT_SECONDS)
                headers = {name: value for name, value in exchange.headers.items()
                           if name.lower() not in HOP_HEADERS}
                server.request(self.command, self.path, exchange.body or None, headers)
                self.pass_on(server.getresponse(), exchange)
                server.close()

            def pass_on(self, response, exchange):
                exchange.status = response.status
                exchange.answer_headers = dict(response.getheaders())
                self.send_response(response.status)
                for name, value in response.getheaders():
                    if name.lower() not in HOP_HEADERS:
                        self.send_header(name, value)
                if self.command == "HEAD":
                    self.end_headers()
                    return
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while piece := response.read1(READ_BYTES):
                    exchange.answer += piece
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

            do_GET = do_POST = do_HEAD = do_DELETE = do_PUT = do_OPTIONS = relay

        self.relay = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay)
        self.relay.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.relay.server_port}"

    def __enter__(self) -> "Recorder":
        threading.Thread(target=self.relay.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.relay.shutdown()
        self.relay.server_close()
