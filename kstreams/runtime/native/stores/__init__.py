"""The stores of an application as queries see them: their methods, and where in the application stores are."""
