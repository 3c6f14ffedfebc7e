"""Real gateways as processes on this machine: started, killed, stopped, waited for."""
