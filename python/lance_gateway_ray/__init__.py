"""The driver that does heavy table work of Lance Gateway on a Ray cluster."""
