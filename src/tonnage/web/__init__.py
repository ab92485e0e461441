"""The HTTP API and the page (extra `web`): the answers of the command line over HTTP, and a page that asks for them."""
