"""The OpenAPI document of the API, generated from its routes, and the page that shows it."""
