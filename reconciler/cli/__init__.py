"""Commands: composes the other packages; alone prints, asks and exits."""
