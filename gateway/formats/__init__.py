"""Forms of conversations that come in from elsewhere, and go out again. Pure."""
