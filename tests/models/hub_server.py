"""Servers on this machine that answer as the Hugging Face Hub, its CDN and ModelScope do, and note what they were
asked.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "fedcba9876543210fedcba9876543210fedcba98"


@dataclass
class Asked:
    """One request: which server, method, path with query, range and credentials."""

    server: str
    method: str
    path: str
    range: str
    token: str
    cookie: str


@dataclass
class Repository:
    files: dict[str, bytes]
    gated: bool = False
    private: bool = False
    revisions: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})


@dataclass
class Sites:
    """What the servers hold and how they misbehave. `odd` maps a path to a function that answers in its own way."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    good_token: str = "hf_good"
    asked: list[Asked] = field(default_factory=list)
    odd: dict[str, Callable[["Handler"], None]] = field(default_factory=dict)
    hub: str = ""
    cdn: str = ""
    lists: bool = True
    redirect: Callable[[str], str] | None = None

    def paths(self, server: str = "hub") -> list[str]:
        return [asked.path for asked in self.asked if asked.server == server]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        sites = self.server.sites
        header = self.headers.get
        sites.asked.append(
            Asked(
                self.server.role,
                self.command,
                self.path,
                header("Range", ""),
                header("Authorization", ""),
                header("Cookie", ""),
            )
        )
        path = unquote(urlsplit(self.path).path)
        if path in sites.odd:
            sites.odd[path](self)
        elif self.server.role == "cdn":
            self.cdn(path)
        elif path.startswith("/api/v1/models/"):
            self.modelscope(path)
        elif path.startswith("/api/models/"):
            self.api(path)
        else:
            self.resolve(path)

    do_HEAD = do_GET  # noqa: N815

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status: int, code: str, message: str = "") -> None:
        self.reply(status, b'{"error": "no"}', X_Error_Code=code, X_Error_Message=message)

    def denied(self, name: str) -> bool:
        """Answer as the Hub does where the repository, or the token, may not be."""
        repository, token = self.server.sites.repositories.get(name), self.headers.get("Authorization", "")
        wrong = token and token != f"Bearer {self.server.sites.good_token}"
        if wrong:
            self.fail(401, "", "Invalid credentials in Authorization header")
        elif repository is None or (repository.private and not token):
            self.fail(401 if not token else 404, "RepoNotFound", "Repository not found")
        return bool(wrong) or repository is None or (repository.private and not token)

    def api(self, path: str) -> None:
        if not self.server.sites.lists:
            self.reply(404)
            return
        name, _, revision = path.removeprefix("/api/models/").partition("/revision/")
        if self.denied(name):
            return
        repository = self.server.sites.repositories[name]
        commit = repository.revisions.get(revision, revision if revision in repository.revisions.values() else "")
        if not commit:
            self.fail(404, "RevisionNotFound", "Invalid rev id")
            return
        listed = [{"rfilename": file} for file in repository.files]
        self.reply(200, json.dumps({"id": name, "sha": commit, "siblings": listed, "gated": repository.gated}).encode())

    def resolve(self, path: str) -> None:
        name, _, rest = path.strip("/").partition("/resolve/")
        revision, _, file = rest.partition("/")
        if self.denied(name):
            return
        repository = self.server.sites.repositories[name]
        if repository.gated and not self.headers.get("Authorization"):
            self.fail(401, "GatedRepo", "Access to model is restricted")
        elif repository.gated:
            self.fail(403, "GatedRepo", "Access to model is restricted and you are not in the authorized list")
        elif revision not in repository.revisions and revision not in repository.revisions.values():
            self.fail(404, "RevisionNotFound")
        elif file not in repository.files:
            self.fail(404, "EntryNotFound")
        elif file.endswith((".safetensors", ".gguf")):
            sites = self.server.sites
            where = sites.redirect(file) if sites.redirect else f"{sites.cdn}/{name}/{file}?Signature=secret"
            self.reply(302, Location=where, X_Repo_Commit=COMMIT, X_Linked_Size=str(len(repository.files[file])))
        else:
            self.part(repository.files[file])

    def cdn(self, path: str) -> None:
        owner, name, file = path.strip("/").split("/", 2)
        self.part(self.server.sites.repositories[f"{owner}/{name}"].files[file])

    def part(self, data: bytes) -> None:
        """The asked range of a file, or all of it."""
        headers = {"ETag": f'"{sha256(data).hexdigest()}"', "X_Repo_Commit": COMMIT, "Accept_Ranges": "bytes"}
        asked = self.headers.get("Range", "")
        if not asked:
            self.reply(200, data, **headers)
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        part = data[int(first) : int(last) + 1]
        self.reply(206, part, **headers, Content_Range=f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}")

    def modelscope(self, path: str) -> None:
        name, _, what = path.removeprefix("/api/v1/models/").partition("/repo")
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        repository = self.server.sites.repositories.get(name)
        if self.headers.get("Authorization", "Bearer hf_good") != f"Bearer {self.server.sites.good_token}":
            self.reply(401, b'{"Code": 10010205001, "Message": "token invalid"}')
        elif repository is None or query.get("Revision") not in ("master", "v2"):
            self.reply(404, b'{"Code": 10010205001, "Message": "not found"}')
        elif repository.gated:
            self.reply(403, b'{"Code": 10010101004, "Message": "unauthorized permission"}')
        elif what == "/files":
            files = [{"Path": file, "Type": "blob", "Size": len(data)} for file, data in repository.files.items()]
            files.append({"Path": "folder", "Type": "tree", "Size": 0})
            self.reply(
                200, json.dumps({"Code": 200, "Data": {"Files": files}, "Message": "success", "Success": True}).encode()
            )
        elif query["FilePath"].endswith(".safetensors"):
            self.reply(302, Location=f"{self.server.sites.cdn}/{name}/{query['FilePath']}")
        else:
            self.part(repository.files[query["FilePath"]])


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, role: str, sites: Sites):
        super().__init__(("127.0.0.1", 0), Handler)
        self.role, self.sites = role, sites
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, *args: object) -> None:
        """Clients that hang up in the middle are part of the tests."""

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
