"""The served page refuses what no visitor sends: other hosts and origins, uploads, malformed bodies."""

import contextlib
import http.client
import json
import socket
from urllib.parse import urlsplit

import pytest

from abacist.app.request_guard import MAX_BODY, allowed_hosts, host_name


@pytest.fixture
def send(address):
    """Send one request and return its status and body."""

    def call(method="GET", path="/", body=None, headers=None):
        place = urlsplit(address)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read(), response.headers

    return call


JSON = {"Content-Type": "application/json"}


def test_only_the_hosts_of_the_page_are_answered(send, address):
    port = urlsplit(address).port
    assert send()[0] == 200
    assert send(headers={"Host": f"localhost:{port}"})[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", ""):
        status, text, headers = send(headers={"Host": host, "Origin": f"http://{host}"})
        assert status == 421
        assert "ABACIST_HOSTS" in json.loads(text)["error"]
        assert "access-control-allow-origin" not in headers


def test_other_websites_are_refused(send, address):
    body = json.dumps({"problem": "1+1"})
    path = "/gradio_api/call/v2/answer"
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        status, _, headers = send("POST", path, body, JSON | {"Origin": origin})
        assert status == 403
        assert "access-control-allow-origin" not in headers
    assert send("POST", path, body, JSON | {"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert send("POST", path, body, JSON | {"Origin": address})[0] == 200
    assert send("POST", path, body, JSON)[0] == 200


UPLOAD = (
    b"--b\r\nContent-Disposition: form-data; name=files; filename=a.txt\r\n\r\nhello\r\n--b--\r\n"
)


def test_nothing_can_be_uploaded_and_no_file_is_given(send):
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert send("POST", "/gradio_api/upload", UPLOAD, headers)[0] == 404
    assert send("POST", "/upload", UPLOAD, headers)[0] == 404
    assert send(path="/gradio_api/file=/etc/passwd")[0] == 404
    assert send(path="/gradio_api/proxy=http://127.0.0.1/")[0] == 404


def test_bodies_are_bounded(address):
    place = urlsplit(address)
    path = "/gradio_api/call/v2/answer"
    with contextlib.closing(http.client.HTTPConnection(place.hostname, place.port)) as connection:
        connection.putrequest("POST", path)
        connection.putheader("Content-Length", str(MAX_BODY + 1))
        connection.endheaders()
        assert connection.getresponse().status == 413
    with contextlib.closing(http.client.HTTPConnection(place.hostname, place.port)) as connection:
        connection.putrequest("POST", path)
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        # The server answers and closes before the end of the body, which may fail here.
        with contextlib.suppress(OSError):
            for _ in range(25):
                connection.send(b"c350\r\n" + b"x" * 50_000 + b"\r\n")
        with contextlib.suppress(OSError):
            assert connection.getresponse().status == 413


MALFORMED = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe",
    b"7",
    b'{"data": 7}',
    b'{"data": {}}',
    b'{"data": [], "fn_index": 999999}',
    b'{"data": [], "fn_index": -1, "session_hash": 7}',
    b'{"data": [1, 2, 3], "fn_index": 0, "session_hash": "x", "event_data": 5, "trigger_id": "y"}',
    b'{"fn_index": "a"}',
    b'{"data": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"problem": ' + b"9" * 5_000 + b"}",
]
PATHS = [
    "/gradio_api/queue/join",
    "/gradio_api/call/answer",
    "/gradio_api/call/v2/answer",
    "/gradio_api/call/v2/nobody",
    "/gradio_api/run/answer",
    "/gradio_api/api/predict",
    "/gradio_api/cancel",
    "/gradio_api/reset",
]


@pytest.mark.parametrize("path", PATHS)
def test_malformed_bodies_are_answered_without_a_server_error(send, path):
    for body in MALFORMED:
        status, _, _ = send("POST", path, body, JSON)
        assert status < 500, body[:60]
    assert send()[0] == 200


def test_an_invalid_request_line_leaves_the_page_up(send, address):
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n")
        connection.recv(100)
    assert send()[0] == 200


def test_results_that_are_never_fetched_are_kept_for_a_bounded_number_of_sessions(gallery):
    from abacist.app import page

    with page.build(gallery) as blocks:
        queue = blocks._queue
    for sessions in (queue.pending_messages_per_session, queue.pending_event_ids_session):
        for number in range(3_000):
            sessions[f"session {number}"] = set()
        assert len(sessions) == page._MAX_SESSIONS
        assert "session 2999" in sessions
    assert page._launch_settings(allowed_hosts(None))["state_session_capacity"] <= 400


def test_hosts_follow_the_address_that_is_served(monkeypatch):
    monkeypatch.delenv("GRADIO_SERVER_NAME", raising=False)
    monkeypatch.setenv("ABACIST_HOSTS", "sums.example, Other.example")
    local, everywhere = allowed_hosts(None), allowed_hosts("0.0.0.0")
    for host in ("127.0.0.1:7860", "LOCALHOST", "[::1]:7860", "sums.example", "other.example:80"):
        assert host in local
    for host in ("192.168.0.7", "evil.example", "", "[::1", None):
        assert host not in local
    assert "192.168.0.7:7860" in everywhere
    assert "[fe80::1]:7860" in everywhere
    assert "evil.example" not in everywhere
    monkeypatch.setenv("SPACE_HOST", "me-sums.hf.space")
    assert "me-sums.hf.space" in allowed_hosts("0.0.0.0")
    assert host_name("Example.org.:80") == "example.org"
