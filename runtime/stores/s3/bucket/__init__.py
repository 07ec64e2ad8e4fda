"""The bucket itself: its settings, whether it is fit for use, and the page in it."""
