"""The version of tonnage, which documents, reports and servers say."""

__version__ = "0.1.0"
