"""The host's library: observe, compare, apply, restore and remove one host's section of the plan.

Standard library only, Python 3.9 or newer, relative imports only: it runs in Ansible modules and,
zipped, in the boot units.
"""
