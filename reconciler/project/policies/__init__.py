"""Policy files of the project."""
