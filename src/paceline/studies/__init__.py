"""From a study file to finished runs, and back from a study folder to its results.

    load/ (TOML ─▶ Study) ─▶ expand/ (─▶ Points) ─▶ execute/ (─▶ run folders) ─▶ folder/ (─▶ results)

shipped/ has the study files of the package. `folder/watching.py` reads a study that another process runs, and writes
nothing there. Everything here resumes: a killed study is continued by starting it again.
"""
