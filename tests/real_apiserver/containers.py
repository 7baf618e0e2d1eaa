"""A pod's container as a process on this machine: its command line, its mounts, its user, and nothing else.

With root's rights it runs in a mount namespace whose `/` is what `scripts/build-root` made, laid over the machine's own
programs (which stand for the image's base), read-only, as the user that the pod names, without capabilities. Without
them, paths on its command line are replaced by those of the files that would be mounted there.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cli.programs import Program

Document = dict[str, Any]
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
DATA, VERSION = "..data", "..2026_11_16"
"""A mounted ConfigMap's files are links into a folder that a link names, so that all change at once."""


@functools.cache
def can_contain() -> bool:
    """Whether this user may make mounts of their own, for a process alone."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "chroot"))):
        return False
    tried = subprocess.run(["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True)
    return tried.returncode == 0


class Container:
    """The first container of a pod. `volumes` holds what its volumes show, made in `folder`."""

    def __init__(
        self,
        spec: Document,
        *,
        root: Path,
        folder: Path,
        config_maps: Mapping[str, Mapping[str, str]],
        server: tuple[str, int],
        token: str,
        ca_pem: str,
        namespace: str,
        node: Mapping[str, Path] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._root, self._folder, self._server = root, folder, server
        self._spec, self._namespace, self._more_environment = spec, namespace, environment or {}
        (self.container,) = spec["containers"]
        self._node: Mapping[str, Path] = node or {}
        self.mounts: dict[str, tuple[Path, bool]] = {}
        """Path in the container → what is there, and whether it may be written."""
        for mount in self.container.get("volumeMounts", ()):
            (volume,) = [each for each in spec["volumes"] if each["name"] == mount["name"]]
            self.mounts[mount["mountPath"]] = (self._made(volume, config_maps), not mount.get("readOnly", False))
        if spec.get("serviceAccountName"):
            account = self._folder / "account"
            account.mkdir()
            for name, text in (("token", token), ("ca.crt", ca_pem), ("namespace", namespace)):
                (account / name).write_text(text, encoding="utf-8")
            self.mounts[SERVICE_ACCOUNT] = (account, False)

    def _made(self, volume: Document, config_maps: Mapping[str, Mapping[str, str]]) -> Path:
        where: Path = self._folder / "volumes" / volume["name"]
        if "hostPath" in volume:
            path: str = volume["hostPath"]["path"]
            return self._node[path]
        where.mkdir(parents=True)
        if "configMap" in volume:
            (where / VERSION).mkdir()
            for name, text in config_maps[volume["configMap"]["name"]].items():
                (where / VERSION / name).write_text(text, encoding="utf-8")
                (where / name).symlink_to(f"{DATA}/{name}")
            (where / DATA).symlink_to(VERSION)
        else:
            assert "emptyDir" in volume, f"{volume} is not built here"
            where.chmod(0o777)
        return where

    @property
    def command(self) -> list[str]:
        return [*self.container["command"], *self.container.get("args", ())]

    def environment(self) -> dict[str, str]:
        of_the_pod = {"metadata.name": "pod-1", "metadata.namespace": self._namespace}
        own = {
            each["name"]: each["value"] if "value" in each else of_the_pod[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in self.container.get("env", ())
        }
        host, port = self._server
        inside = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}
        image = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        return image | (inside if SERVICE_ACCOUNT in self.mounts else {}) | own | dict(self._more_environment)

    def start(self, *more: str) -> Program:
        """Run it; `more` are flags for what two processes of one machine cannot share, such as a port."""
        program = self._contained([*self.command, *more]) if can_contain() else self._replaced(more)
        return Program(home=self._folder, program=program)

    def run(self, *command: str) -> Program:
        """Another command in the same container, to its end, as `kubectl exec` does; only where it can be contained."""
        with Program(home=self._folder, program=self._contained(command)) as program:
            program.ended()
            return program

    # In a mount namespace.

    def _contained(self, command: Sequence[str]) -> list[str]:
        user = self._user()
        environment = [f"{name}={value}" for name, value in self.environment().items()]
        drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
        drop += ["--bounding-set=-all", "--inh-caps=-all"]
        inside = shlex.join(["env", "-i", *environment, *drop, *command])
        script = "\n".join([*self._mounting(), f'exec chroot "$root" {inside}'])
        return ["unshare", "--mount", "--propagation=private", "sh", "-euc", script]

    def _user(self) -> int:
        pod = self._spec.get("securityContext", {})
        own: int = self.container.get("securityContext", {}).get("runAsUser", pod.get("runAsUser", 65532))
        return own

    def _mounting(self) -> list[str]:
        """Lines of shell that make the container's `/` under $root."""
        root = self._folder / "root"
        lines = [f"root={shlex.quote(str(root))}", 'mkdir -p "$root"', 'mount -t tmpfs none "$root"']

        def bind(source: str | Path, target: str, *, writable: bool = False) -> None:
            place = f'"$root"{shlex.quote(target)}'
            if Path(source).is_dir():
                lines.append(f"mkdir -p {place}")
            else:
                lines.append(f"mkdir -p $(dirname {place}) && touch {place}")
            lines.append(f"mount --rbind {shlex.quote(str(source))} {place}")
            if not writable:
                lines.append(f"mount -o remount,ro,bind {place}")

        for name in ("usr", "lib", "lib64", "bin", "sbin"):
            path = Path("/", name)
            if path.is_symlink():
                lines.append(f'ln -s {shlex.quote(str(path.readlink()))} "$root/{name}"')
            elif path.is_dir():
                bind(path, f"/{name}")
        base = Path(sys.base_prefix).resolve()
        if not base.is_relative_to("/usr"):
            bind(base, str(base))
        bind(self._root / "opt" / "mooring", "/opt/mooring")
        # The image has its links beside the base's programs; the machine's own folder cannot be written.
        lines.append('mkdir -p "$root/links"')
        for each in sorted((self._root / "usr" / "local" / "bin").iterdir()):
            lines.append(f'ln -s {shlex.quote(str(each.readlink()))} "$root/links/{each.name}"')
        lines.append('mount --bind "$root/links" "$root/usr/local/bin"')
        for shared in ("/proc", "/dev"):
            bind(shared, shared, writable=True)
        for shared in ("/etc/hosts", "/etc/resolv.conf", "/etc/ld.so.cache"):
            if Path(shared).exists():
                bind(Path(shared).resolve(), shared)
        lines.append('mkdir -m 1777 "$root/tmp"')
        for target, (source, writable) in self.mounts.items():
            bind(source, target, writable=writable)
        if self.container.get("securityContext", {}).get("readOnlyRootFilesystem"):
            lines.append('mount -o remount,ro "$root"')
        return lines

    # Without.

    def _replaced(self, more: Sequence[str]) -> list[str]:
        """The same program with the paths where the files really are; the account comes from a kubeconfig."""
        program, *words = [self._mapped(word) for word in self.command]
        environment = {name: self._mapped(value) for name, value in self.environment().items() if name != "PATH"}
        python = str(self._root / "opt" / "mooring" / "bin" / "python")
        ours = {"mooring": [python, "-P", "-m", "mooring"], "kube-scheduler": [python, "-P", "-m", "mooring", "run"]}
        command = [*ours.get(program, [f"{self._root}{program}"]), *words]
        if SERVICE_ACCOUNT in self.mounts:
            path = self._folder / "account.kubeconfig"
            path.write_text(json.dumps(self._kubeconfig()), encoding="utf-8")
            environment["KUBECONFIG"] = str(path)
            if program in ours:
                command += [f"--authentication-kubeconfig={path}", f"--authorization-kubeconfig={path}"]
        return ["env", *(f"{name}={value}" for name, value in environment.items()), *command, *more]

    def _mapped(self, word: str) -> str:
        name, equals, value = word.rpartition("=")
        for target, (source, _) in self.mounts.items():
            if value == target or value.startswith(f"{target}/"):
                return f"{name}{equals}{source}{value.removeprefix(target)}"
        return word

    def _kubeconfig(self) -> Document:
        host, port = self._server
        account, _ = self.mounts[SERVICE_ACCOUNT]
        cluster = {"server": f"https://{host}:{port}", "certificate-authority": str(account / "ca.crt")}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "pod",
            "clusters": [{"name": "pod", "cluster": cluster}],
            "users": [{"name": "pod", "user": {"tokenFile": str(account / "token")}}],
            "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod"}}],
        }


def removed(folder: Path) -> None:
    """Remove the read-only files that `scripts/build-root` made."""
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.chmod(0o755)
    shutil.rmtree(folder)
