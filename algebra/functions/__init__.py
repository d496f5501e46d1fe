"""The functions of terms, a family a module: the kernels that compute them, and the operations that choose among
these.
"""
