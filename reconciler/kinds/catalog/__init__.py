"""One declarative file for each kind that manifests can declare. The list of these files is the registry of kinds."""
