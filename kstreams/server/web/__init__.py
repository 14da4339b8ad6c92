"""What stands between sockets and the answers of the server: connections, who reads what, and routes."""
