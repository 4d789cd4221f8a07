"""Who may do how much: API keys, tokens, rates, connections, and the addresses that webhooks may reach."""
