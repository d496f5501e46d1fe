"""Federations: the temporal relations of a query between each result row and its sources, with the lines that state
them.
"""
