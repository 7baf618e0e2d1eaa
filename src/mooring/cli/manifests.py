"""`mooring manifests`: what runs a configuration in a cluster, with the rights it needs and no others."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.files import in_made_folder, read_if_regular, write_private, write_whole
from mooring.base.log import Log
from mooring.cli.common import load, plugins_option, read_text, registry_with
from mooring.cli.output import print_line, print_yaml
from mooring.cli.output_files import reader_of

if TYPE_CHECKING:
    from mooring.config import Configuration, LeaderElection
    from mooring.deploy import Deployed, Mode
    from mooring.deploy.rights import Right
    from mooring.framework.gates import FeatureGates
    from mooring.framework.registry import Registry

MODES = ("second-scheduler", "replacement", "shadow")
STATIC_POD = "kube-scheduler.yaml"
_MARK = "# Written by mooring manifests.\n"

_log = Log("manifests")


@dataclass(frozen=True)
class Options:
    """The command line."""

    config_file: str
    mode: str
    plugins: tuple[str, ...]
    feature_gates: tuple[str, ...]
    name: str | None
    namespace: str | None
    image: str | None
    replicas: int | None
    memory_request: str | None
    memory_limit: str | None
    metrics_from: tuple[str, ...]
    probes_from: tuple[str, ...]
    network_policy: bool
    verbosity: int
    scheduler_name: str | None
    start_from: str | None
    cluster_dns: bool
    flags: tuple[str, ...]


@dataclass(frozen=True)
class ManifestInputs:
    """The configuration, and what follows from it and the flags."""

    mode: Mode
    name: str
    configuration: Configuration
    registry: Registry
    flags: tuple[str, ...]
    rights: tuple[Right, ...]
    election: LeaderElection
    plugin_files: Mapping[str, str]


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--config", "config_file", required=True, metavar="FILE", help="The KubeSchedulerConfiguration to run.")
@click.option(
    "--as",
    "mode",
    type=click.Choice(MODES),
    default="second-scheduler",
    show_default=True,
    help="Beside the cluster's own scheduler, in its place (kubeadm's static pod), or only comparing with it.",
)
@plugins_option
@click.option("--feature-gates", multiple=True, metavar="NAME=BOOL,…", help="As `mooring run` takes them.")
@click.option("--name", metavar="NAME", help="Of the Deployment and its account.  [default: after the first profile]")
@click.option("--namespace", metavar="NAME", help="Where it runs.  [default: mooring-system]")
@click.option("--image", metavar="IMAGE", help="Built by deploy/Dockerfile, or upon it.  [default: mooring:VERSION]")
@click.option(
    "--replicas", type=click.IntRange(min=1), metavar="N", help="How many.  [default: 2 with leader election, else 1]"
)
@click.option("--memory-request", metavar="QUANTITY", help="Memory that it requests.  [default: 256Mi]")
@click.option("--memory-limit", metavar="QUANTITY", help="Memory beyond which it is restarted.  [default: 2Gi]")
@click.option(
    "--metrics-from",
    multiple=True,
    metavar="NAMESPACE[/LABEL=VALUE,…]",
    help="Pods that may connect to its port to read metrics; repeatable.  [default: monitoring]",
)
@click.option(
    "--probes-from",
    multiple=True,
    metavar="CIDR",
    help="Nodes that may connect, where the network plugin does not always let a kubelet through; repeatable.",
)
@click.option("--network-policy/--no-network-policy", default=True, help="Write a NetworkPolicy.  [default: yes]")
@click.option("--verbosity", type=click.IntRange(min=0), default=2, show_default=True, help="Of its log.")
@click.option("--scheduler-name", metavar="NAME", help="Shadow: the scheduler to compare with, if not the profile's.")
@click.option("--from", "start_from", metavar="FILE", help="Replacement: the static pod that the node has now.")
@click.option("--cluster-dns", is_flag=True, help="Replacement: look names up in the cluster, not as the host does.")
@click.option("--output", metavar="FOLDER", help="Write a file for each object, instead of printing them.")
@click.option("--force", is_flag=True, help="Replace files in FOLDER that this command has not written.")
@click.option(
    "--controllers", is_flag=True, help="Also run `mooring controllers`: status of PodGroups and quotas, and events."
)
@click.option("--helm-values", is_flag=True, help="Print the values that make the Helm chart write the same.")
@click.argument("flags", nargs=-1)
def manifests(output: str | None, force: bool, helm_values: bool, controllers: bool, **options: Any) -> None:
    """Print the manifests that run a configuration in a cluster.

    Its account gets the rights that the plugins in the configuration need, and no others. FLAGS, after `--`, are
    further flags of `mooring run`.

    \b
    Example:
      mooring manifests --config scheduler.yaml --plugins my_plugin.py | kubectl apply -f -
      mooring manifests --config scheduler.yaml --as replacement --from /etc/kubernetes/manifests/kube-scheduler.yaml
      mooring manifests --config scheduler.yaml -- --leader-elect=false
    """
    wanted = Options(**options)
    if controllers and wanted.mode == "replacement":
        raise click.UsageError("--controllers writes a Deployment; leave out --as replacement.")
    _check(wanted, helm_values)
    inputs = _inputs(wanted)
    _note_what_is_missing(wanted, inputs)
    if wanted.mode == "replacement":
        _write_static_pod(wanted, inputs, output, force=force)
        return
    from mooring.deploy import manifests as documents_of
    from mooring.deploy.values import values_text
    from mooring.deploy.writing import text_of

    deployed = _deployed(wanted, inputs)
    if helm_values:
        print_yaml(values_text(deployed, controllers=controllers))
        return
    documents = documents_of(deployed)
    if controllers:
        from mooring.deploy.controllers import controller_manifests

        documents += controller_manifests(deployed)
    if output is None:
        print_yaml(text_of(documents))
        return
    files = {f"{at:02}-{each['kind'].lower()}.yaml": each for at, each in enumerate(documents, start=1)}
    _write(
        output,
        {name: text_of([each]) for name, each in files.items()},
        private=[name for name, each in files.items() if each["kind"] == "Secret"],
        force=force,
    )


def _note_what_is_missing(options: Options, inputs: ManifestInputs) -> None:
    """What the cluster needs besides the manifests, with the commands, on standard error."""
    from mooring.cli.plugin_definitions import custom_kinds
    from mooring.deploy.planned import IMAGE

    if options.image is None:
        print_line(
            f"Note: {IMAGE} is in no registry. Build it in a checkout (docker build --file deploy/Dockerfile --tag "
            "NAME .), push it to where the cluster pulls from, and give --image NAME.",
            err=True,
        )
    kinds = custom_kinds(inputs.configuration, inputs.registry)
    named = " ".join(f"--plugins {shlex.quote(each)}" for each in options.plugins)
    for plugin in sorted({plugins[0] for plugins in kinds.values()}):
        read = ", ".join(kind.KIND.name for kind, plugins in kinds.items() if plugins[0] == plugin)
        command = " ".join(f"mooring crd generate {plugin} {named}".split())
        print_line(f"Note: {plugin} reads {read}. Where that is not defined: {command} | kubectl apply -f -", err=True)


def _check(options: Options, helm_values: bool) -> None:
    """Options that contradict each other, all at once."""
    from mooring.objects.names import dns_label

    problems = [
        Problem(flag, "; ".join(wrong))
        for flag, value in (("--name", options.name), ("--namespace", options.namespace))
        if value is not None and (wrong := dns_label(value))
    ]
    if options.image is not None and (not options.image or any(map(str.isspace, options.image))):
        problems.append(
            Problem("--image", f"must be a name that can be pulled, such as mooring:1, got {options.image!r}")
        )
    replaces = options.mode == "replacement"
    meaningless = {
        "--scheduler-name": (options.scheduler_name is not None and options.mode != "shadow", "shadow"),
        "--from": (options.start_from is not None and not replaces, "replacement"),
        "--cluster-dns": (options.cluster_dns and not replaces, "replacement"),
    }
    problems += [Problem(flag, f"is for --as {mode}") for flag, (is_given, mode) in meaningless.items() if is_given]
    if replaces:
        given = {
            "--name": options.name,
            "--namespace": options.namespace,
            "--replicas": options.replicas,
            "--memory-request": options.memory_request,
            "--memory-limit": options.memory_limit,
            "--metrics-from": options.metrics_from or None,
            "--probes-from": options.probes_from or None,
            "--no-network-policy": None if options.network_policy else True,
            "--helm-values": helm_values or None,
        }
        message = "is for a Deployment; kubeadm's static pod has its own"
        problems += [Problem(flag, message) for flag, value in given.items() if value is not None]
    if problems:
        raise OperatorMistake.found_in("the command line", problems)


def _inputs(options: Options) -> ManifestInputs:
    from mooring.deploy import Mode
    from mooring.deploy.planned import flags_for, name_for, warnings_of
    from mooring.framework.gates import read_gates

    gates = read_gates(options.feature_gates).gates
    registry = registry_with(options.plugins)
    configuration = load(options.config_file, registry, gates)
    mode = Mode(options.mode)
    for warning in warnings_of(mode, configuration):
        _log.warning(warning)
    name = options.name or name_for(mode, configuration)
    flags = [f"--feature-gates={each}" for each in options.feature_gates]
    flags += [f"--plugins={each}" for each in options.plugins if not Path(each).exists()]
    if mode is not Mode.REPLACEMENT:
        flags += flags_for(mode, configuration, name, verbosity=options.verbosity)
    if options.scheduler_name:
        flags.append(f"--scheduler-name={options.scheduler_name}")
    flags += options.flags
    election = _election(options, configuration, flags, mode)
    return ManifestInputs(
        mode,
        name,
        configuration,
        registry,
        tuple(flags),
        _rights(configuration, registry, gates, election, mode),
        election,
        _plugin_files(options.plugins),
    )


def _election(options: Options, configuration: Configuration, flags: Sequence[str], mode: Mode) -> LeaderElection:
    """The election by these flags of `mooring run`; what it refuses, or what contradicts the manifest, is refused."""
    from mooring.cli.election import election_of
    from mooring.deploy import Mode
    from mooring.deploy.manifests import PORT

    parsed = _parsed(flags)
    problems = []
    if parsed.get("config_file") is not None:
        message = "name the file before `--`: the manifest brings it, and grants the rights that it needs"
        problems.append(Problem("-- --config", message))
    if parsed.get("secure_port", PORT) != PORT:
        message = f"the manifest's probes use port {PORT}, got {parsed['secure_port']}; leave it out"
        problems.append(Problem("-- --secure-port", message))
    if parsed.get("shadow") and mode is not Mode.SHADOW:
        problems.append(Problem("-- --shadow", "write --as shadow, which also grants a shadow's rights and no others"))
    problems += _conflicts(parsed, options.config_file, [*options.plugins, *parsed["plugins"]])
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    election = election_of(
        configuration.leader_election, {name: parsed[name] for name in parsed if name.startswith("leader_elect")}
    )
    # A shadow binds nothing: several may run, none must lead, and it gets no right to a lease.
    return replace(election, leader_elect=False) if mode is Mode.SHADOW else election


def _conflicts(parsed: Mapping[str, Any], config_file: str, plugins: Sequence[str]) -> list[Problem]:
    """What `mooring run` would refuse of flags that it knows: what does not go together, or makes no sense."""
    from mooring.cli.reload import ReloadedFiles, reload_problems
    from mooring.cli.serving import ServingFlags
    from mooring.cli.shadow import shadow_problems
    from mooring.cli.tracing import tracing_options
    from mooring.scheduler.serving.metric_filter import MetricFilter

    files = ReloadedFiles(config_file, plugins, parsed["watch_config"], parsed["reload_plugins"])
    problems = shadow_problems(parsed) + reload_problems(files)
    try:
        # In the pod the environment is another than here.
        tracing_options(parsed["tracing_endpoint"], {})
        ServingFlags.taken_from(dict(parsed), MetricFilter(), {}).options()
    except OperatorMistake as mistake:
        problems += mistake.problems
    return [Problem(f"-- {problem.path}", problem.message) for problem in problems]


def _parsed(flags: Sequence[str], source: str = "the command line") -> dict[str, Any]:
    """As `mooring run` will read these flags. What it would refuse is refused, what it would ignore is a warning."""
    from mooring.cli.configuration_flags import ConfigurationFlags
    from mooring.cli.run import run

    try:
        parsed = run.make_context("mooring run", list(flags)).params
    except OperatorMistake as mistake:
        if not mistake.problems:
            raise
        raise OperatorMistake.found_in(source, mistake.problems) from None
    except click.UsageError as error:
        raise OperatorMistake(f"{source}: {error.format_message()}") from None
    ConfigurationFlags.taken_from(dict(parsed)).warn("the file that is mounted")
    return parsed


def _rights(
    configuration: Configuration, registry: Registry, gates: FeatureGates, election: LeaderElection, mode: Mode
) -> tuple[Right, ...]:
    from mooring.deploy import Mode, rights_of

    is_shadow = mode is Mode.SHADOW
    return rights_of(
        configuration, registry, gates=gates, election=election, serves=not is_shadow, only_reads=is_shadow
    )


def _plugin_files(plugins: Sequence[str]) -> dict[str, str]:
    """The plugin files that go into the cluster, with what they import. A name that stands twice would be one file."""
    from mooring.framework.plugin_files import with_helpers

    found: dict[str, str] = {}
    problems = []
    for path in map(Path, plugins):
        if not path.exists():
            continue  # module:Class is in the image, or nowhere
        folder = path if path.is_dir() else path.parent
        for file in with_helpers(str(path)):
            if not file.is_file():
                continue
            if file.parent != folder:
                message = f"{file} is in a folder of its own, which a ConfigMap cannot hold; put it beside the plugin"
                problems.append(Problem("--plugins", message))
            elif found.setdefault(file.name, text := read_text(str(file))) != text:
                problems.append(Problem("--plugins", f"two files are called {file.name}; rename one of them"))
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    return found


def _deployed(options: Options, inputs: ManifestInputs) -> Deployed:
    from mooring.deploy.config_text import without_kubeconfig
    from mooring.deploy.manifests import Memory
    from mooring.deploy.network import ingress_of
    from mooring.deploy.planned import IMAGE, NAMESPACE, deployed, problems_of

    text = read_text(options.config_file)
    config = without_kubeconfig(text, options.config_file)
    if config != text:
        _log.warning("clientConnection.kubeconfig is left out: a pod connects with its service account")
    ingress, problems = ingress_of(options.metrics_from, options.probes_from)
    usual = Memory()
    memory = Memory(options.memory_request or usual.request, options.memory_limit or usual.limit)
    holds_credentials = _holds_credentials(inputs.configuration)
    if holds_credentials:
        _log.info("The configuration holds credentials: it is stored in a Secret instead of a ConfigMap")
    found = deployed(
        inputs.mode,
        name=inputs.name,
        namespace=options.namespace or NAMESPACE,
        image=options.image or IMAGE,
        config=config,
        flags=inputs.flags,
        rights=inputs.rights,
        election=inputs.election,
        plugins=inputs.plugin_files,
        holds_credentials=holds_credentials,
        replicas=options.replicas,
        memory=memory,
        ingress=ingress if options.network_policy else None,
    )
    if problems := problems + problems_of(found):
        raise OperatorMistake.found_in("the command line", problems)
    return found


def _write_static_pod(options: Options, inputs: ManifestInputs, output: str | None, *, force: bool) -> None:
    from mooring.base.documents import read_tree
    from mooring.deploy import static_pod
    from mooring.deploy.manifests import access
    from mooring.deploy.planned import IMAGE
    from mooring.deploy.upstream import beyond_kube_scheduler
    from mooring.deploy.writing import text_of

    source = options.start_from or "kubeadm's manifest"
    if options.start_from is not None:
        manifest = read_tree(read_text(options.start_from), options.start_from).plain()
    else:
        manifest = static_pod.kubeadm_manifest()
    pod = static_pod.replacement(
        manifest,
        image=options.image or IMAGE,
        flags=inputs.flags,
        with_plugins=bool(inputs.plugin_files),
        cluster_dns=options.cluster_dns,
        source=source,
    )
    if options.start_from is not None:
        # A static pod that ends at once would leave the cluster without a scheduler.
        _parsed(static_pod.flags_of(pod), source)
    user = {"kind": "User", "name": static_pod.USER, "apiGroup": "rbac.authorization.k8s.io"}
    beyond = beyond_kube_scheduler(inputs.rights)
    rbac = access("mooring:kube-scheduler", beyond_kube_scheduler(inputs.rights, with_optional=True), user, {})
    if output is None:
        print_yaml(text_of([pod]))
        if beyond:
            named = ", ".join(sorted({f"{right.resource}.{right.group}" for right in beyond}))
            _log.warning(f"kube-scheduler may not read {named}: --output FOLDER also writes the role for it, rbac.yaml")
        return
    config_path = Path(static_pod.CONFIG_PATH)
    copies = {config_path.name: read_text(options.config_file)}
    copies |= {f"{Path(static_pod.PLUGINS_PATH).name}/{name}": text for name, text in inputs.plugin_files.items()}
    files = {STATIC_POD: text_of([pod]), **copies}
    if rbac:
        files["rbac.yaml"] = text_of(rbac)
    private = {config_path.name} if _holds_credentials(inputs.configuration) else set()
    _write(output, files, private=private, copies=copies, force=force)


def _holds_credentials(configuration: Configuration) -> bool:
    from mooring.config.as_v1 import as_v1

    return as_v1(configuration) != as_v1(configuration, with_credentials=True)


def _write(
    folder: str,
    files: Mapping[str, str],
    *,
    private: Collection[str] = (),
    copies: Collection[str] = (),
    force: bool = False,
) -> None:
    """`copies` are files as they are; the others are made here, and get the mark of what may be replaced."""
    texts = {Path(folder, name): text if name in copies else f"{_MARK}{text}" for name, text in files.items()}
    changed = {path: text.encode() for path, text in texts.items() if _content(path) != text.encode()}
    problems = [Problem("--output", problem) for path in changed if (problem := _problem_with(path, force=force))]
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    private_paths = {Path(folder, name) for name in private}
    for path in texts:
        try:
            with in_made_folder(path.parent):
                if path in changed:
                    (write_private if path in private_paths else write_whole)(path, changed[path])
        except OSError as error:
            raise OperatorMistake(f"{path} cannot be written: {error.strerror}.") from error
        print_line(str(path))


def _problem_with(path: Path, *, force: bool) -> str:
    """Why a file of the folder must stay."""
    if force or not os.path.lexists(path) or path.is_symlink():
        return ""  # what is no regular file is refused when it is written
    ctx = click.get_current_context(silent=True)
    if ctx is not None and (reader := reader_of(str(path), ctx)):
        return f"{path} is what {reader} reads; name another folder, or replace it with --force"
    if (_content(path) or b"").startswith(_MARK.encode()):
        return ""
    return f"{path} exists and is no manifest that Mooring wrote; name another folder, or replace it with --force"


def _content(path: Path) -> bytes | None:
    try:
        return read_if_regular(path)
    except OSError:
        return None
