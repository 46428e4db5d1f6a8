"""Two studies or runs side by side: matched points, changes, caveats."""
