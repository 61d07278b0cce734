"""Job, controller, agent, prediction, sweep and the command."""
