"""Control: one controller, many agents, MQTT between them.

Desired state goes down as retained messages, actual state comes back, last wills tell who is lost.
`desired.diff` decides what an agent does next; nothing here knows packets or traces.
"""
