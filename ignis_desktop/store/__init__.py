"""What the program keeps on disk: conversations and settings. Only ``chat_worker`` needs Qt."""
