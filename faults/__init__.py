"""The fault campaign: kills, damaged files, full disks. ``python -m faults --help``"""
