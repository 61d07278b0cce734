"""The labs that come with rankwire, as data."""
