"""The offline teacher's parts: what it knows (`world`), how it answers each task (`tasks`), which faults it plays
(`faults`), and the endpoint (`server`)."""
