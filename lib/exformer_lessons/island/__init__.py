"""What the lab about an island needs: its passages, and two published models."""
