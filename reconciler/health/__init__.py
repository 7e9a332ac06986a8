"""Whether the objects of an account work, and which DNS records it needs: pure functions of a snapshot."""
