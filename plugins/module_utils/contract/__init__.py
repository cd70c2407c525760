"""The contract: names, numbers and document shapes that controller and host share.

Standard library only, Python 3.9 or newer. Neither side computes anything here.
"""
