"""From rows of any form to stored rows: each is accepted, or rejected for a reason."""
