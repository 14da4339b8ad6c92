"""A web service that knows the city of a postcode: `python service.py`."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CITIES = {"10": "Berlin", "20": "Hamburg", "80": "Munich"}


class Cities(BaseHTTPRequestHandler):
    """Answers `/cities/10115` with `{"city": "Berlin"}`."""

    def do_GET(self) -> None:
        city = CITIES[self.path.removeprefix("/cities/")[:2]]
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"city": city}).encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Do not print each request."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8099), Cities).serve_forever()
