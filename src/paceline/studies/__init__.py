"""From a study file to finished runs, and back from a study folder to its results.

    load (TOML ─▶ Study) ─▶ expand (Study ─▶ Points) ─▶ execute (Points ─▶ run folders) ─▶ collect (folder ─▶ results)

Everything here resumes: a study that was killed is continued by starting it again.
"""
