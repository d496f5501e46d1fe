"""The functions of terms as columns of Spark, a family a module as in `algebra.functions`."""
