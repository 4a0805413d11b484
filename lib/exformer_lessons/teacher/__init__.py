"""What teachers need beside the lessons: questions and exams, and their answers, which are encrypted."""
