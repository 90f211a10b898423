"""Taking screenshots, and where their pixels lie on the desktop."""
