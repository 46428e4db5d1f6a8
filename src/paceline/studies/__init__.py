"""From a study file to finished runs, and back from a study folder to its results.

    load (TOML ─▶ Study) ─▶ expand (Study ─▶ Points) ─▶ execute (Points ─▶ run folders) ─▶ collect (folder ─▶ results)

watching.py looks at a study that another process runs, and leaves no trace there.
Everything here resumes: a study that was killed is continued by starting it again.
"""
