"""Where the API server is, and who we are there: found as kubectl finds it."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.client import ExecPlugin, Impersonation, find_connection, load_kubeconfig

EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "tool", "interactiveMode": "Never"}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture
def pod(tmp_path):
    """A service account as a pod finds it."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("pod-token\n")
    (folder / "ca.crt").write_text("ca")
    (folder / "namespace").write_text("kube-system\n")
    return folder


POD_ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


class TestWhichOne:
    """--kubeconfig, clientConnection.kubeconfig, $KUBECONFIG, the pod we run in, ~/.kube/config."""

    @pytest.fixture
    def everything(self, write_kubeconfig, pod, tmp_path):
        def named(name):
            return str(write_kubeconfig(name, cluster={"server": f"https://{Path(name).name}:1"}))

        write_kubeconfig("home/.kube/config", cluster={"server": "https://home:1"})
        return {
            "kubeconfig": named("flag"),
            "config_kubeconfig": named("scheduler"),
            "environ": POD_ENVIRON | {"KUBECONFIG": named("variable")},
            "home": tmp_path / "home",
            "service_account_dir": pod,
        }

    def test_in_this_order(self, everything):
        found = [find_connection(**everything).server]
        everything["kubeconfig"] = None
        found.append(find_connection(**everything).server)
        everything["config_kubeconfig"] = ""
        found.append(find_connection(**everything).server)
        del everything["environ"]["KUBECONFIG"]
        found.append(find_connection(**everything).server)
        everything["environ"] = {}
        found.append(find_connection(**everything).server)
        assert found == [
            "https://flag:1", "https://scheduler:1", "https://variable:1", "https://10.0.0.1:443", "https://home:1",
        ]  # fmt: skip

    def test_a_context_is_looked_for_in_files_and_not_in_the_pod(self, everything):
        everything["kubeconfig"] = everything["config_kubeconfig"] = None
        everything["environ"] = dict(POD_ENVIRON)
        assert find_connection(**everything, context="main").server == "https://home:1"
        with pytest.raises(OperatorMistake, match=r'--context\s+no context is named "gone"; there is "main"'):
            find_connection(**everything, context="gone")

    def test_a_named_file_that_is_missing_is_a_mistake_and_not_a_reason_to_look_elsewhere(self, everything):
        with pytest.raises(OperatorMistake, match="The kubeconfig /no/such/file does not exist"):
            find_connection(**everything | {"kubeconfig": "/no/such/file"})

    def test_without_any_file_the_error_names_what_to_do(self, tmp_path):
        with pytest.raises(OperatorMistake, match="Name a kubeconfig file with --kubeconfig"):
            find_connection(environ={}, home=tmp_path, service_account_dir=tmp_path)

    def test_a_variable_that_names_only_missing_files_is_a_mistake(self, tmp_path):
        with pytest.raises(OperatorMistake, match=r"\$KUBECONFIG names /no/file, which does not exist"):
            find_connection(environ={"KUBECONFIG": "/no/file"}, home=tmp_path)

    def test_missing_files_among_several_are_passed_over(self, write_kubeconfig):
        paths = f"/no/file{os.pathsep}{write_kubeconfig()}{os.pathsep}"
        assert find_connection(environ={"KUBECONFIG": paths}).server == "https://one:6443"


class TestInAPod:
    def test_the_service_account_is_used(self, pod, tmp_path):
        found = find_connection(environ=POD_ENVIRON, home=tmp_path, service_account_dir=pod)
        assert found.namespace == "kube-system"
        assert (found.token_file, found.ca_file) == (str(pod / "token"), str(pod / "ca.crt"))
        assert str(pod) in found.source

    def test_an_ipv6_address_gets_its_brackets(self, pod):
        environ = POD_ENVIRON | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
        assert find_connection(environ=environ, service_account_dir=pod).server == "https://[fd00::1]:443"


class TestSeveralFiles:
    def test_the_first_current_context_wins(self, write_kubeconfig):
        first = write_kubeconfig("a", context_name="blue", current="blue", cluster={"server": "https://first"})
        second = write_kubeconfig("b", context_name="green", current="green", cluster={"server": "https://second"})
        found = load_kubeconfig([first, second])
        assert found.server == "https://first"
        assert found.source == f'{first}, context "blue"'

    def test_the_first_entry_of_a_name_wins_and_later_files_add_what_is_new(self, write_kubeconfig):
        first = write_kubeconfig("a", current=None, cluster={"server": "https://first"})
        second = write_kubeconfig("b", current="main", cluster={"server": "https://second"}, user={"token": "t"})
        third = write_kubeconfig(
            "c", context_name="other", user={"token": "late"}, context={"cluster": "c", "user": "u"}
        )
        assert load_kubeconfig([first, second]).server == "https://first"
        assert load_kubeconfig([first, second, third], "other").token == "t"

    def test_relative_paths_belong_to_the_file_that_names_them(self, write_kubeconfig, tmp_path):
        for file in ("x/ca.crt", "y/certs/me.crt", "y/me.key", "y/token"):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text("content")
        where = write_kubeconfig(
            "x/config", cluster={"certificate-authority": "ca.crt"}, context={"cluster": "c", "user": "u"}
        )
        who = write_kubeconfig(
            "y/config",
            user={
                "client-certificate": "certs/me.crt",
                "client-key": "me.key",
                "tokenFile": "token",
                "exec": EXEC | {"command": "../bin/tool"},
            },
        )
        found = load_kubeconfig([where, who])
        assert found.ca_file == str(tmp_path / "x/ca.crt")
        assert found.client_cert_file == str(tmp_path / "y/certs/me.crt")
        assert found.client_key_file == str(tmp_path / "y/me.key")
        assert found.token_file == str(tmp_path / "y/token")
        assert found.exec is not None
        assert found.exec.command == str(tmp_path / "bin/tool")

    def test_a_mistake_names_its_file(self, write_kubeconfig):
        where = write_kubeconfig("x", context={"cluster": "c", "user": "u"})
        who = write_kubeconfig("y", user={"tokenFile": "/no/token"})
        with pytest.raises(OperatorMistake) as mistake:
            load_kubeconfig([where, who])
        assert f"{who}: users[0].user.tokenFile" in str(mistake.value)


class TestTheContentOfAFile:
    def test_the_cluster(self, write_kubeconfig):
        found = load_kubeconfig(
            [
                write_kubeconfig(
                    cluster={
                        "server": "https://one:6443/prefix/",
                        "certificate-authority-data": b64(b"ca"),
                        "certificate-authority": "ignored-beside-data",
                        "tls-server-name": "inner",
                        "proxy-url": "http://proxy:3128",
                    },
                    context={"cluster": "c", "namespace": "shop"},
                )
            ]
        )
        assert found.server == "https://one:6443/prefix"
        assert (found.ca_data, found.ca_file) == (b"ca", None)
        assert (found.tls_server_name, found.proxy_url, found.namespace) == ("inner", "http://proxy:3128", "shop")
        assert not found.insecure_skip_tls_verify

    def test_a_context_needs_no_user(self, write_kubeconfig):
        found = load_kubeconfig([write_kubeconfig()])
        assert (found.token, found.username, found.exec) == (None, None, None)

    def test_the_user(self, write_kubeconfig):
        user = {
            "client-certificate-data": b64(b"cert"), "client-key-data": b64(b"key"), "token": "t\n",
            "as": "ada", "as-uid": "7", "as-groups": ["ops"], "as-user-extra": {"why": ["test"]},
        }  # fmt: skip
        found = load_kubeconfig([write_kubeconfig(user=user)])
        assert (found.client_cert_data, found.client_key_data, found.token) == (b"cert", b"key", "t")
        assert found.impersonate == Impersonation("ada", "7", ("ops",), {"why": ("test",)})

    def test_name_and_password(self, write_kubeconfig):
        found = load_kubeconfig([write_kubeconfig(user={"username": "ada", "password": "x"})])
        assert (found.username, found.password) == ("ada", "x")

    def test_the_exec_plugin(self, write_kubeconfig):
        extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
        plugin = EXEC | {
            "args": ["login"], "env": [{"name": "A", "value": "1"}], "provideClusterInfo": True,
            "installHint": "Install it.", "interactiveMode": "IfAvailable",
        }  # fmt: skip
        found = load_kubeconfig([write_kubeconfig(cluster={"extensions": [extension]}, user={"exec": plugin})])
        assert found.exec == ExecPlugin(
            command="tool",
            args=("login",),
            env={"A": "1"},
            api_version="client.authentication.k8s.io/v1",
            interactive_mode="IfAvailable",
            provide_cluster_info=True,
            cluster_config={"audience": "x"},
            install_hint="Install it.",
        )

    def test_another_context_can_be_chosen(self, write_kubeconfig):
        assert load_kubeconfig([write_kubeconfig(current="gone")], "main").server == "https://one:6443"

    def test_empty_values_and_unknown_fields_are_nothing(self, write_kubeconfig):
        path = write_kubeconfig(
            user={"token": None, "exec": None, "tokenFile": ""}, preferences={}, extensions=None, future={"a": 1}
        )
        assert load_kubeconfig([path]).token is None

    def test_a_date_in_an_extension_is_just_text(self, tmp_path):
        path = tmp_path / "config"
        path.write_text(
            "contexts: [{name: m, context: {cluster: c}}]\ncurrent-context: m\n"
            "clusters: [{name: c, cluster: {server: 'https://x', extensions: [{name: e, extension: 2024-99-99}]}}]\n"
        )
        assert load_kubeconfig([path]).server == "https://x"

    @pytest.mark.parametrize(
        ("server", "ca", "meaning"),
        [
            ("one:8080", {}, "http://one:8080"),
            ("one:6443", {"certificate-authority-data": b64(b"x")}, "https://one:6443"),
            ("https://[fd00::1]:6443", {}, "https://[fd00::1]:6443"),
        ],
    )
    def test_an_address_without_a_scheme_is_guessed_as_kubectl_does(self, write_kubeconfig, server, ca, meaning):
        assert load_kubeconfig([write_kubeconfig(cluster={"server": server} | ca)]).server == meaning


class TestProxiesOfTheEnvironment:
    @pytest.mark.parametrize(
        ("no_proxy", "goes_through"),
        [
            ("", True),
            ("two", False),
            ("api.two", False),
            (".two", False),
            ("*.two", False),
            ("wo", True),
            ("api.two:6443", False),
            ("api.two:443", True),
            ("*", False),
            ("10.0.0.0/8, other", True),
        ],
    )
    def test_no_proxy_lists_what_to_reach_straight(self, write_kubeconfig, no_proxy, goes_through):
        path = write_kubeconfig(cluster={"server": "https://api.two:6443"})
        environ = {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": no_proxy}
        found = load_kubeconfig([path], environ=environ)
        assert found.proxy_url == ("http://proxy:3128" if goes_through else None)

    @pytest.mark.parametrize("host", ["10.1.2.3", "127.0.0.1", "[::1]", "localhost"])
    def test_networks_and_loopback(self, write_kubeconfig, host):
        path = write_kubeconfig(cluster={"server": f"https://{host}:6443"})
        environ = {"https_proxy": "http://proxy", "no_proxy": "10.0.0.0/8"}
        assert load_kubeconfig([path], environ=environ).proxy_url is None

    def test_the_files_own_proxy_wins(self, write_kubeconfig):
        path = write_kubeconfig(cluster={"proxy-url": "http://mine"})
        assert load_kubeconfig([path], environ={"HTTPS_PROXY": "http://other"}).proxy_url == "http://mine"


MISTAKES = {
    "no current context": (
        {"current": None},
        ["current-context", 'is not set, so there is no server to talk to. It has "main".'],
    ),
    "a current context that is not there": ({"current": "prod"}, ['no context is named "prod"; there is "main"']),
    "a cluster that is not there": (
        {"context": {"cluster": "x"}},
        ["contexts[0].context.cluster", 'no cluster is named "x"; there is "c"'],
    ),
    "a user that is not there": (
        {"context": {"cluster": "c", "user": "ada"}},
        ["contexts[0].context.user", 'no user is named "ada"; there is none'],
    ),
    "a context without a cluster": ({"context": {"namespace": "x"}}, ["contexts[0].context.cluster", "is missing"]),
    "no server": ({"cluster": {"server": ""}}, ["clusters[0].cluster.server", "is missing"]),
    "a server that is no address": (
        {"cluster": {"server": "ftp://x"}},
        ["clusters[0].cluster.server", "must look like https://host:6443, got 'ftp://x'"],
    ),
    "a server with a password in its address": (
        {"cluster": {"server": "https://ada:x@one"}},
        ["clusters[0].cluster.server", "must look like"],
    ),
    "a port that is no port": ({"cluster": {"server": "https://x:y"}}, ["clusters[0].cluster.server"]),
    "a field of the wrong type": (
        {"user": {"token": 12}},
        ["users[0].user.token", "Expected `str`, got `int`"],
    ),
    "data that is not base64": (
        {"cluster": {"certificate-authority-data": "%%"}},
        ["clusters[0].cluster.certificate-authority-data", "is not base64"],
    ),
    "a certificate file that is not there": (
        {"cluster": {"certificate-authority": "/no/ca.crt"}},
        ["clusters[0].cluster.certificate-authority", "/no/ca.crt cannot be read: No such file or directory"],
    ),
    "a token file that is not there": ({"user": {"tokenFile": "/no/token"}}, ["users[0].user.tokenFile", "/no/token"]),
    "a certificate without its key": (
        {"user": {"client-certificate-data": b64(b"x")}},
        ["users[0].user.client-key", "is missing beside client-certificate"],
    ),
    "a CA that is not to be checked": (
        {"cluster": {"insecure-skip-tls-verify": True, "certificate-authority-data": b64(b"x")}},
        ["insecure-skip-tls-verify", "remove one of the two"],
    ),
    "a password and a token": ({"user": {"username": "a", "token": "t"}}, ["users[0].user.username"]),
    "groups without a user to act as": ({"user": {"as-groups": ["x"]}}, ["users[0].user.as"]),
    "an old auth provider": ({"user": {"auth-provider": {"name": "gcp"}}}, ["users[0].user.auth-provider", "exec"]),
    "an exec plugin of a version that is gone": (
        {"user": {"exec": EXEC | {"apiVersion": "client.authentication.k8s.io/v1alpha1"}}},
        ["users[0].user.exec.apiVersion", "v1alpha1"],
    ),
    "an exec plugin without an interactiveMode": (
        {"user": {"exec": {"apiVersion": EXEC["apiVersion"], "command": "x"}}},
        ["users[0].user.exec.interactiveMode", "Never, IfAvailable, Always"],
    ),
    "a proxy of an unsupported protocol": ({"cluster": {"proxy-url": "socks5://x"}}, ["clusters[0].cluster.proxy-url"]),
    "several at once": (
        {"cluster": {"server": "ftp://x", "certificate-authority-data": "%"}, "user": {"username": "a", "token": "t"}},
        ["has 3 problems", "clusters[0].cluster.server", "certificate-authority-data", "users[0].user.username"],
    ),
    "wrong types in several entries": (
        {"cluster": {"server": 1}, "user": {"token": 1}},
        ["has 2 problems", "clusters[0].cluster.server", "users[0].user.token"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sections", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_names_file_and_field(write_kubeconfig, sections, expected):
    path = write_kubeconfig(**sections)
    with pytest.raises(OperatorMistake) as mistake:
        load_kubeconfig([path])
    for part in (str(path), *expected):
        assert part in str(mistake.value)


FILES = {
    "not YAML": ("a: b\nc: }\n", "(line 2)"),
    "not fields": ("- a\n", "holds no fields"),
    "another kind of file": ("kind: Pod\n", "its kind is 'Pod'"),
    "a list that is none": ("contexts: {a: b}\n", "must be a list"),
    "an entry without a name": ("users: [{user: {}}]\n", "users[0].name"),
    "an empty file": ("", "current-context"),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES.keys())
def test_a_file_that_is_no_kubeconfig(tmp_path, content, message):
    (tmp_path / "config").write_text(content)
    with pytest.raises(OperatorMistake) as mistake:
        load_kubeconfig([tmp_path / "config"])
    assert message in str(mistake.value)
    assert str(tmp_path / "config") in str(mistake.value)


def test_a_folder_is_no_kubeconfig(tmp_path):
    with pytest.raises(OperatorMistake, match="cannot be read: Is a directory"):
        load_kubeconfig([tmp_path])


def test_v1beta1_plugins_need_no_interactive_mode(write_kubeconfig):
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "tool", "args": None}
    found = load_kubeconfig([write_kubeconfig(user={"exec": plugin})])
    assert found.exec is not None
    assert found.exec.interactive_mode == "IfAvailable"


def test_of_a_field_that_is_given_twice_the_last_counts(write_kubeconfig):
    path = write_kubeconfig()
    path.write_text(path.read_text() + "\ncurrent-context: none\ncurrent-context: nowhere\n")
    with pytest.raises(OperatorMistake, match='no context is named "nowhere"'):
        load_kubeconfig([path])
