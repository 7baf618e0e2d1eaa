"""Finds the API server as kubectl does: kubeconfig files (several, merged), or the pod we run in.

Of several files the first that has a value wins, per named entry; a relative path belongs to the folder of
the file that names it. A file that is missing or wrong is the operator's mistake, and is named with the field.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import msgspec

from mooring.base.documents import read_tree
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.redaction import shown_url
from mooring.client.connection import Connection, ExecPlugin, Impersonation
from mooring.client.proxy import environment_proxy, is_usable_proxy

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


class _Section(msgspec.Struct, rename="kebab", kw_only=True):
    """A part of a kubeconfig; unknown fields are left alone, as kubectl does."""


class _Extension(_Section):
    name: str = ""
    extension: Any = None


class _Cluster(_Section):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[_Extension] | None = None


class _EnvVar(_Section):
    name: str
    value: str


class _Exec(_Section, rename="camel"):
    command: str = ""
    args: list[str] | None = None
    env: list[_EnvVar] | None = None
    api_version: str = ""
    interactive_mode: str = ""
    provide_cluster_info: bool = False
    install_hint: str = ""


class _User(_Section):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(default=None, name="as-user-extra")
    auth_provider: Any = None
    exec: _Exec | None = None


class _Context(_Section):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


Part = TypeVar("Part", bound=_Section)


@dataclass(frozen=True)
class _Entry(Generic[Part]):
    """A named entry and where it stands: its relative paths belong to that file."""

    part: Part
    file: Path
    path: str

    def resolved(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.file.absolute().parent, path))


class _Merged:
    """Several kubeconfig files seen as one."""

    def __init__(self) -> None:
        self.current_context = ""
        self.clusters: dict[str, _Entry[_Cluster]] = {}
        self.users: dict[str, _Entry[_User]] = {}
        self.contexts: dict[str, _Entry[_Context]] = {}

    def add(self, file: Path, prefix: str, read: Callable[[Path], bytes]) -> None:
        """Add the entries that earlier files lack. The prefix of field paths identifies the file in messages."""
        document = _read(file, read)
        problems: list[Problem] = []
        current = document.get("current-context") or ""
        if not isinstance(current, str):
            problems.append(Problem("current-context", f"must be a string, got {current!r}"))
        for name, entry in _entries(document, "clusters", "cluster", _Cluster, file, prefix, problems):
            self.clusters.setdefault(name, entry)
        for name, user in _entries(document, "users", "user", _User, file, prefix, problems):
            self.users.setdefault(name, user)
        for name, context in _entries(document, "contexts", "context", _Context, file, prefix, problems):
            self.contexts.setdefault(name, context)
        if problems:
            raise _mistake(str(file), problems)
        self.current_context = self.current_context or current


def find_connection(
    *,
    kubeconfig: str | None = None,
    config_kubeconfig: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    service_account_dir: Path = SERVICE_ACCOUNT_DIR,
) -> Connection:
    """The API server to use, by the first of these that is there:

    `--kubeconfig`, `clientConnection.kubeconfig`, $KUBECONFIG, the pod we run in, ~/.kube/config. A named
    context needs a file, so the pod we run in is passed over.
    """
    if named := kubeconfig or config_kubeconfig:
        return load_kubeconfig([named], context, environ=environ)
    if listed := [path for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]:
        present = [path for path in listed if Path(path).exists()]
        if not present:
            raise OperatorMistake(f"$KUBECONFIG names {', '.join(listed)}, which does not exist.")
        return load_kubeconfig(present, context, environ=environ)
    if not context and (inside := in_cluster_connection(environ, service_account_dir)) is not None:
        return inside
    # expanduser, not Path.home(): a user id without an entry in passwd has no home, which is no mistake
    usual = (home if home is not None else Path(os.path.expanduser("~"))) / ".kube" / "config"
    if not usual.exists():
        raise OperatorMistake(
            f"No cluster to talk to: there is no --kubeconfig, $KUBECONFIG is not set, no service "
            f"account is mounted here, and {usual} does not exist. Name a kubeconfig file with --kubeconfig."
        )
    return load_kubeconfig([usual], context, environ=environ)


def load_kubeconfig(
    paths: Iterable[str | Path],
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    read: Callable[[Path], bytes] = Path.read_bytes,
) -> Connection:
    """The connection that a context (by default the current one) of these files describes."""
    files = [Path(path) for path in paths]
    merged = _Merged()
    for file in files:
        merged.add(file, f"{file}: " if len(files) > 1 else "", read)
    named = ", ".join(map(str, files))
    wanted = context or merged.current_context
    if not wanted:
        known = f" It has {_choices(merged.contexts)}." if merged.contexts else ""
        raise _mistake(named, [Problem("current-context", f"is not set, so there is no server to talk to.{known}")])
    if wanted not in merged.contexts:
        selected_by = "--context" if context else "current-context"
        raise _mistake(
            named, [Problem(selected_by, f'no context is named "{wanted}"; there is {_choices(merged.contexts)}')]
        )
    chosen = merged.contexts[wanted]
    cluster = merged.clusters.get(chosen.part.cluster)
    user = merged.users.get(chosen.part.user) if chosen.part.user else None
    problems = []
    if cluster is None:
        problems.append(_unknown(chosen, "cluster", chosen.part.cluster, merged.clusters))
    if chosen.part.user and user is None:
        problems.append(_unknown(chosen, "user", chosen.part.user, merged.users))
    if problems or cluster is None:
        raise _mistake(str(chosen.file), problems)
    source = f'{chosen.file}, context "{wanted}"'
    return _connection(source, chosen.part.namespace, cluster, user, environ)


def in_cluster_connection(
    environ: Mapping[str, str] = os.environ, service_account_dir: Path = SERVICE_ACCOUNT_DIR
) -> Connection | None:
    """The API server of the pod we run in, or None outside a pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    token, ca = service_account_dir / "token", service_account_dir / "ca.crt"
    if not host or not port or not token.exists():
        return None
    namespace = service_account_dir / "namespace"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Connection(
        server=server,
        proxy_url=environment_proxy(server, environ),
        source=f"the service account in {service_account_dir}",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        ca_file=str(ca) if ca.exists() else None,
        token_file=str(token),
    )


def _connection(
    source: str,
    namespace: str,
    cluster: _Entry[_Cluster],
    user: _Entry[_User] | None,
    environ: Mapping[str, str],
) -> Connection:
    problems: list[Problem] = []
    where = cluster.part
    server = _server(cluster, problems)
    proxy = _proxy(cluster, server, environ, problems)
    has_ca = where.certificate_authority or where.certificate_authority_data
    if where.insecure_skip_tls_verify and has_ca:
        problems.append(
            Problem(
                f"{cluster.path}.insecure-skip-tls-verify",
                "a certificate authority is given too; remove one of the two",
            )
        )
    ca_data = _decoded(cluster, "certificate-authority-data", where.certificate_authority_data, problems)
    connection = Connection(
        server=server,
        source=source,
        namespace=namespace or "default",
        ca_data=ca_data,
        ca_file=_file(cluster, "certificate-authority", where.certificate_authority, ca_data, problems),
        insecure_skip_tls_verify=where.insecure_skip_tls_verify,
        tls_server_name=where.tls_server_name or None,
        proxy_url=proxy,
        **(_identity(user, cluster, problems) if user is not None else {}),
    )
    if problems:
        raise _mistake(source, problems)
    return connection


def _identity(user: _Entry[_User], cluster: _Entry[_Cluster], problems: list[Problem]) -> dict[str, Any]:
    who = user.part
    if who.auth_provider is not None and not (who.token or who.token_file):
        problems.append(
            Problem(f"{user.path}.auth-provider", "is not supported; use an exec plugin or a token instead")
        )
    if who.username and (who.token or who.token_file):
        problems.append(Problem(f"{user.path}.username", "a token is given too; remove one of the two"))
    if (who.impersonate_uid or who.impersonate_groups or who.impersonate_extra) and not who.impersonate:
        problems.append(Problem(f"{user.path}.as", "is needed to act with another uid, group or extra"))
    cert_data = _decoded(user, "client-certificate-data", who.client_certificate_data, problems)
    key_data = _decoded(user, "client-key-data", who.client_key_data, problems)
    cert_file = _file(user, "client-certificate", who.client_certificate, cert_data, problems)
    key_file = _file(user, "client-key", who.client_key, key_data, problems)
    has_cert, has_key = cert_data is not None or cert_file is not None, key_data is not None or key_file is not None
    if has_cert and not has_key:
        problems.append(Problem(f"{user.path}.client-key", "is missing beside client-certificate"))
    if has_key and not has_cert:
        problems.append(Problem(f"{user.path}.client-certificate", "is missing beside client-key"))
    return {
        "client_cert_data": cert_data,
        "client_cert_file": cert_file,
        "client_key_data": key_data,
        "client_key_file": key_file,
        "token": who.token.strip() or None,
        "token_file": _file(user, "tokenFile", who.token_file, None, problems),
        "username": who.username or None,
        "password": who.password or None,
        "exec": _exec_plugin(user, cluster, problems) if who.exec is not None else None,
        "impersonate": Impersonation(
            who.impersonate,
            who.impersonate_uid,
            tuple(who.impersonate_groups or ()),
            {key: tuple(values) for key, values in (who.impersonate_extra or {}).items()},
        )
        if who.impersonate
        else None,
    }


def _exec_plugin(user: _Entry[_User], cluster: _Entry[_Cluster], problems: list[Problem]) -> ExecPlugin:
    wanted = user.part.exec
    assert wanted is not None
    path = f"{user.path}.exec"
    if not wanted.command:
        problems.append(Problem(f"{path}.command", "is missing"))
    if wanted.api_version not in EXEC_API_VERSIONS:
        problems.append(
            Problem(f"{path}.apiVersion", f"must be {' or '.join(EXEC_API_VERSIONS)}, got {wanted.api_version!r}")
        )
    mode = wanted.interactive_mode
    if not mode and wanted.api_version == EXEC_API_VERSIONS[0]:
        problems.append(Problem(f"{path}.interactiveMode", f"must be one of {', '.join(INTERACTIVE_MODES)}"))
    if mode and mode not in INTERACTIVE_MODES:
        problems.append(
            Problem(f"{path}.interactiveMode", f"must be one of {', '.join(INTERACTIVE_MODES)}, got {mode!r}")
        )
    # A bare name is looked up in PATH; anything with a folder in it belongs to the kubeconfig that names it.
    command = user.resolved(wanted.command) if os.path.dirname(wanted.command) else wanted.command
    return ExecPlugin(
        command=command,
        args=tuple(wanted.args or ()),
        env={variable.name: variable.value for variable in wanted.env or ()},
        api_version=wanted.api_version,
        interactive_mode=mode or "IfAvailable",
        provide_cluster_info=wanted.provide_cluster_info,
        cluster_config=next(
            (extension.extension for extension in cluster.part.extensions or () if extension.name == EXEC_EXTENSION),
            None,
        ),
        install_hint=wanted.install_hint,
    )


def _server(cluster: _Entry[_Cluster], problems: list[Problem]) -> str:
    path, server = f"{cluster.path}.server", cluster.part.server.strip()
    if not server:
        problems.append(Problem(path, "is missing"))
        return ""
    if "://" not in server:  # kubectl guesses too: TLS settings mean TLS
        part = cluster.part
        secure = part.certificate_authority or part.certificate_authority_data or part.insecure_skip_tls_verify
        server = f"{'https' if secure else 'http'}://{server}"
    try:
        parts = urlsplit(server)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = is_address and "@" not in parts.netloc and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable:
        problems.append(Problem(path, f"must look like https://host:6443, got {shown_url(cluster.part.server)!r}"))
    return server.rstrip("/")


def _proxy(cluster: _Entry[_Cluster], server: str, environ: Mapping[str, str], problems: list[Problem]) -> str | None:
    """The kubeconfig's proxy, else the one the environment names for this server."""
    if proxy := cluster.part.proxy_url:
        if not is_usable_proxy(proxy):
            what = f"must look like http://host:3128 or https://host:3128, got {shown_url(proxy)!r}"
            problems.append(Problem(f"{cluster.path}.proxy-url", what))
        return proxy
    proxy = environment_proxy(server, environ) or ""
    if proxy and not is_usable_proxy(proxy):
        variable = f"{urlsplit(server).scheme}_proxy".upper()
        what = f"must look like http://host:3128 or https://host:3128, got {shown_url(proxy)!r}"
        problems.append(Problem(f"the environment variable {variable}", what))
    return proxy or None


def _decoded(entry: _Entry[Any], field: str, text: str, problems: list[Problem]) -> bytes | None:
    if not text:
        return None
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        problems.append(Problem(f"{entry.path}.{field}", "is not base64"))
        return None


def _file(entry: _Entry[Any], field: str, path: str, data: bytes | None, problems: list[Problem]) -> str | None:
    """The absolute path of a named file; inline data wins over it."""
    if not path or data is not None:
        return None
    resolved = entry.resolved(path)
    try:
        with open(resolved, "rb"):
            return resolved
    except OSError as error:
        problems.append(Problem(f"{entry.path}.{field}", f"{resolved} cannot be read: {error.strerror}"))
        return None


def _read(file: Path, read: Callable[[Path], bytes]) -> dict[str, Any]:
    try:
        content = read(file)
    except FileNotFoundError as error:
        raise OperatorMistake(f"The kubeconfig {file} does not exist.") from error
    except OSError as error:
        raise OperatorMistake(f"The kubeconfig {file} cannot be read: {error.strerror}.") from error
    # Not strict: of a field that is given twice kubectl takes the last.
    document = read_tree(content, str(file), strict=False).plain()
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise OperatorMistake(f"The kubeconfig {file} is not a kubeconfig: it holds no fields.")
    if document.get("kind", "Config") != "Config":
        raise OperatorMistake(f"The kubeconfig {file} is not a kubeconfig: its kind is {document['kind']!r}.")
    return document


def _entries(
    document: dict[str, Any],
    plural: str,
    singular: str,
    type_: type[Part],
    file: Path,
    prefix: str,
    problems: list[Problem],
) -> list[tuple[str, _Entry[Part]]]:
    """The named entries of one list; what is wrong with any of them goes to `problems`."""
    found: list[tuple[str, _Entry[Part]]] = []
    listed = document.get(plural) or []
    if not isinstance(listed, list):
        problems.append(Problem(plural, "must be a list"))
        return []
    for index, item in enumerate(listed):
        path = f"{prefix}{plural}[{index}]"
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            problems.append(Problem(f"{path}.name", "must be a string"))
            continue
        try:
            part = msgspec.convert(_without_nulls(item.get(singular) or {}), type_)
        except msgspec.ValidationError as error:
            message, _, at = str(error).partition(" - at `$")
            problems.append(Problem(f"{path}.{singular}{at.rstrip('`')}", message))
            continue
        found.append((item["name"], _Entry(part, file, f"{path}.{singular}")))
    return found


def _without_nulls(value: Any) -> Any:
    """A field without a value is a field that is not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value


def _choices(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names) or "none"


def _unknown(context: _Entry[_Context], kind: str, name: str, known: Iterable[str]) -> Problem:
    if not name:
        return Problem(f"{context.path}.{kind}", "is missing")
    return Problem(f"{context.path}.{kind}", f'no {kind} is named "{name}"; there is {_choices(known)}')


def _mistake(where: str, problems: list[Problem]) -> OperatorMistake:
    return OperatorMistake.found_in(f"The kubeconfig {where}", problems)
