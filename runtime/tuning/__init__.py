"""What a run learns about its own speed: costs of steps as they were measured, and the choices made by them."""
