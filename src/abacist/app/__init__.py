"""The web page: functions that return plain data, their markup, and a thin skin of Gradio."""
