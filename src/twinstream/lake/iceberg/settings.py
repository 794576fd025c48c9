"""The settings of an Iceberg REST catalog."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

__all__ = ["CatalogSettings"]


@frozen(kw_only=True)
class CatalogSettings:
    """The settings of a REST catalog, and the namespace of the tables. None is a secret."""

    uri: str
    """URL of the catalog, as its documentation gives it, without the version."""
    namespace: tuple[str, ...]
    """Levels of the namespace with the tables of the pipeline."""
    warehouse: str = ""
    """Name or location of the warehouse, if the catalog has several."""
    token_env: str = ""
    """Name of the environment variable with a bearer token."""
    credential_env: str = ""
    """Name of the environment variable with a client ID and its secret, `id:secret`, for which the
    catalog issues tokens."""
    properties: Mapping[str, str] = field(factory=dict[str, str])
    """Further properties of the catalog's client, such as `rest.signing-name`."""

    @property
    def is_signed(self) -> bool:
        """Whether requests are signed with the keys of the object store."""
        return self.properties.get("rest.sigv4-enabled", "").lower() == "true"

    @staticmethod
    def table_name(table: str) -> str:
        """Return the name of a table in the catalog.

        All catalogs accept lower-case letters, digits and underscores. The dead letters of the
        source `orders` are in the table `dead_letters_orders`.
        """
        return table.replace("/source=", "_").replace("-", "_").lower()

    def __str__(self) -> str:
        return self.uri
