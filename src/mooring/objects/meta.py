"""What every Kubernetes object has: its kind, its name, its owners. And how a plugin author declares a new kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform

import msgspec

from mooring.objects.read_only import EMPTY, ReadOnlyDict, refuse_attribute, seal, seal_deeply
from mooring.objects.wire import ReadOnlyMeta, Wire


class Kind(msgspec.Struct, frozen=True):
    """A resource of the API: what identifies it, and its path."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """As messages and `kubectl get` name it: `pods`, `clusterscopedresources.scheduling.sigs.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of one object, of a namespace's, or of all."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        path = (
            f"{root}/namespaces/{namespace}/{self.plural}" if namespace and self.namespaced else f"{root}/{self.plural}"
        )
        if name:
            path = f"{path}/{name}"
        return f"{path}/{subresource}" if subresource else path


class KindColumn(msgspec.Struct, frozen=True):
    """A column of `kubectl get`, of a custom kind."""

    name: str
    type: str
    path: str


class OwnerReference(Wire):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Wire):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    def __post_init__(self) -> None:
        if type(self.labels) is not ReadOnlyDict:
            seal(self, "labels")
        if type(self.annotations) is not ReadOnlyDict:
            seal(self, "annotations")


class _KindMeta(ReadOnlyMeta):
    """Lets a class statement declare its kind: `class Quota(CustomResource, group=…, version=…, plural=…)`.

    Fields are by keyword in every subclass, so that one without a default may follow `metadata`.
    """

    KIND: Kind
    APPROVED: str
    SHORT_NAMES: tuple[str, ...]
    COLUMNS: tuple[KindColumn, ...]
    HAS_STATUS_SUBRESOURCE: bool

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        version: str | None = None,
        group: str = "",
        plural: str = "",
        scope: Literal["Namespaced", "Cluster"] = "Namespaced",
        kind: str | None = None,
        approved: str = "",
        short_names: tuple[str, ...] = (),
        columns: tuple[KindColumn, ...] = (),
        status_subresource: bool = True,
        **options: Any,
    ) -> Any:
        created = super().__new__(mcls, name, bases, namespace, **({"kw_only": True} | options))
        if version is not None:
            created.KIND = Kind(group, version, kind or name, plural or name.lower() + "s", scope == "Namespaced")
        if approved:
            created.APPROVED = approved
        if short_names:
            created.SHORT_NAMES = short_names
        if columns:
            created.COLUMNS = columns
        if not status_subresource:
            created.HAS_STATUS_SUBRESOURCE = False
        return created


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class KubeObject(msgspec.Struct, metaclass=_KindMeta, rename="camel", omit_defaults=True, dict=True, frozen=True):
    """Anything that is listed and watched, read-only. `KIND` is where the API serves it.

    `dict=True` gives room for values computed once per object (a pod's requests); they are not on the wire.
    """

    KIND: ClassVar[Kind]

    if TYPE_CHECKING:

        def __init_subclass__(
            cls,
            *,
            version: str | None = None,
            group: str = "",
            plural: str = "",
            scope: Literal["Namespaced", "Cluster"] = "Namespaced",
            kind: str | None = None,
            approved: str = "",
            short_names: tuple[str, ...] = (),
            columns: tuple[KindColumn, ...] = (),
            status_subresource: bool = True,
            **options: Any,
        ) -> None: ...

    else:
        __setattr__ = __delattr__ = refuse_attribute

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone where the kind has no namespaces."""
        return f"{self.metadata.namespace}/{self.metadata.name}" if self.metadata.namespace else self.metadata.name


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class ResourcePart(Wire):
    """A structure inside a plugin author's own kind, such as its spec: camelCase on the wire, read-only."""

    def __post_init__(self) -> None:
        seal_deeply(self)


class CustomResource(KubeObject):
    """The base of a plugin author's own kind.

    class Quota(CustomResource, group="example.com", version="v1", plural="quotas", scope="Cluster"):
        spec: QuotaSpec

    Kubernetes protects groups that end in `k8s.io` or `kubernetes.io`: a kind in one also has `approved`: the
    address of the review, or a reason that begins with "unapproved".
    """

    APPROVED: ClassVar[str] = ""
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ()
    """Other names for kubectl: `kubectl get pg`."""
    COLUMNS: ClassVar[tuple[KindColumn, ...]] = ()
    """What `kubectl get` shows besides the name; none: the age."""
    HAS_STATUS_SUBRESOURCE: ClassVar[bool] = True
    """Whether a field `status` is written by requests of its own; False: with the rest of the object."""

    def __post_init__(self) -> None:
        seal_deeply(self)
